"""``prune4rel encoders``: which there are, what they take, and what they remember."""

from typing import Annotated

from typer import Argument, Option, echo

from prune4rel.cli import app
from prune4rel.cli.tables import AsJson


@app.command()
def encoders(
    name: Annotated[str | None, Argument(help="Show this encoder in full; timm/*resnet* lists models of timm.")] = None,
    *,
    as_json: AsJson = False,
    clear_cache: Annotated[bool, Option("--clear-cache", help="Forget all embeddings that are remembered.")] = False,
) -> None:
    """List the encoders, show one in full, or forget what they remember."""
    from prune4rel.cli.tables import print_entry, print_json, print_list
    from prune4rel.encoders import default_encoder, get, list_encoders
    from prune4rel.encoders.cache import cache_bytes, cache_folder
    from prune4rel.encoders.cache import clear_cache as clear
    from prune4rel.machine import format_bytes

    if clear_cache:
        kept = cache_bytes()
        clear()
        echo(f"{format_bytes(kept)} of embeddings are forgotten")
        return
    if name is not None and "*" in name:
        found = list_encoders(name)
        if as_json:
            print_json(found)
        else:
            echo("\n".join(found))
        return
    if name is not None:
        family = get(name)
        needs = f"pip install 'prune4rel[{family.extra}]'" if family.extra else "nothing more"
        about = (f"encodes: {family.kind}", f"needs: {needs}")
        print_entry(family.form, family.open, family.options, about=about)
        return
    families = [get(form) for form in list_encoders()]
    if as_json:
        print_json(
            [{"name": one.form, "kind": one.kind, "extra": one.extra, "summary": one.summary} for one in families]
        )
        return
    rows = ((one.form, one.kind, one.extra or "-", one.summary) for one in families)
    usual = f"Unless told: {default_encoder('images')} for images, {default_encoder('texts')} for texts."
    where = cache_folder()
    words = "nothing is remembered" if where is None else f"{format_bytes(cache_bytes())} remembered in {where}"
    print_list(("encoder", "of", "extra", "what it is"), rows, f"{usual} {words}. One in full: prune4rel encoders NAME")
