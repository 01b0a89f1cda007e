"""In which form the texts of a request are that are to be scored."""

from __future__ import annotations

from nmt_core.errors import ConfigError
from nmt_core.inference.text_forms import FormReader, TextForm
from nmt_core.serving.models import ServedModel
from nmt_core.serving.refusal import invalid, not_supported
from nmt_core.v1 import nmt_pb2 as pb

_TEXT_FORMS: dict[int, TextForm] = {
    pb.TEXT_FORM_UNSPECIFIED: "prepared",
    pb.TEXT_FORM_SURFACE: "surface",
    pb.TEXT_FORM_RAW: "raw",
}


def form_reader(model: ServedModel, number: int) -> FormReader | None:
    """What reads the texts of a request, None for words as they are. Raises Refusal where the model cannot."""
    if number not in _TEXT_FORMS:
        raise invalid("form", f"there is no form of text {number}")
    try:
        return model.reader_of(_TEXT_FORMS[number])
    except ConfigError as error:
        raise not_supported(str(error)) from error
