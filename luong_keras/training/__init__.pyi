from .fit import fit as fit
from .run_folder import RunFolder as RunFolder
from .snapshot import Snapshot as Snapshot
