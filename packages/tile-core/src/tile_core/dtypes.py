"""Element types of the language: a call of one is ``T.cast``."""

from tile_core.vocabulary import word
from tile_runtime.dtypes import *  # noqa: F403
from tile_runtime.dtypes import convert_by

convert_by(lambda value, dtype: word("cast")(value, dtype))
