from .page import write_page as write_page
