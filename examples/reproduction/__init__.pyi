from .plan import Plan as Plan
from .plan import read_plan as read_plan
from .record import Record as Record
from .record import read_records as read_records
