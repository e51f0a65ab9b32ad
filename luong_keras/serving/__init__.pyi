from .export import export_saved_model as export_saved_model
from .limits import ServingLimits as ServingLimits
from .saved_model_checks import check_saved_model as check_saved_model
from .saved_model_session import SavedModelError as SavedModelError
from .saved_model_session import SavedModelSession as SavedModelSession
from .saved_model_session import run_in_server_runtime as run_in_server_runtime
