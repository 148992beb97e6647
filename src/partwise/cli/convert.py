"""``partwise convert``: a model file in another format."""

from __future__ import annotations

import click

from partwise.cli.errors import UserError
from partwise.cli.flags import Flags, argument, flag, make_command
from partwise.cli.output import check_outputs


def convert(flags: Flags) -> None:
    """Write the model of SOURCE to TARGET, in partwise's format or in CRFsuite's.

    The format of SOURCE is recognised by its content: partwise, CRFsuite, Wapiti, or CRF++ (as text).
    CRFsuite's files hold first-order chains over named attributes, without a template, a certificate or parameters of
    training.
    """
    from partwise.model_files import load

    source, target, format = flags["source"], flags["target"], flags["format"]
    if format is None:
        format = "crfsuite" if target.endswith(".crfsuite") else "partwise"
    check_outputs(target, inputs=(source,))
    model = load(source)
    notes = []
    if format == "crfsuite" and getattr(model, "scheme_", None) is not None:
        model.set_params(legal=False)
        notes.append("chunk labels are no longer kept to their scheme, which CRFsuite does not know")
    if format == "crfsuite" and getattr(model, "template_", None) is not None:
        notes.append("the template is not kept: the input is items with attributes now")
    try:
        model.save(target, format=format)
    except ValueError as error:
        raise UserError(f"{source}: {error}") from None
    for note in notes:
        click.echo(f"{target}: {note}", err=True)


command = make_command(
    "convert",
    convert,
    argument("source"),
    argument("target"),
    flag(
        "--to format",
        "Write TARGET in this format [default: crfsuite if it ends in .crfsuite, else partwise].",
        ("partwise", "crfsuite"),
    ),
)
