"""How to make one row of a Django model, from its fields alone. Runs in the app's environment, Python 3.8."""


def recipes(words):
    """A recipe for each parameter that names a model: `order_id` and `order` of a model Order."""
    from django.apps import apps

    models = {model.__name__.lower(): model for model in reversed(list(apps.get_models()))}
    found = {}
    for word in sorted(words):
        name = word.lower()
        for end in ("_id", "_pk", "_uuid", "id"):
            if name.endswith(end) and len(name) > len(end):
                name = name[: -len(end)]
                break
        model = models.get(name.replace("_", ""))
        if model is not None:
            found[word] = {"model": label(model), "steps": steps(model), "by": "object" if name == word else "pk"}
    return found


def label(model):
    return "%s.%s" % (model.__module__, model.__name__)


def steps(model, seen=()):
    """The rows to make, the needed ones first: `{"model", "name", "fields": {name: text of an expression}}`.

    `emails` and `urls` are the fields that hold an address, which is the case's own.
    """
    out, fields, emails, urls = [], {}, [], []
    for field in model._meta.concrete_fields:
        if not needed(field):
            continue
        if field.is_relation:
            other = field.related_model
            if other in seen or other is model:
                continue
            above = [one for one in steps(other, (*seen, model)) if one["model"] not in [two["model"] for two in out]]
            out += above
            fields[field.name] = other.__name__.lower()
        else:
            fields[field.name] = value(field)
            if "@" in fields[field.name]:
                emails.append(field.name)
            if "://" in fields[field.name]:
                urls.append(field.name)
    out.append(
        {"model": label(model), "name": model.__name__.lower(), "fields": fields, "emails": emails, "urls": urls}
    )
    return out


def needed(field):
    if field.primary_key or getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False):
        return False
    return not field.has_default() and not field.null and not (field.blank and field.empty_strings_allowed)


def value(field):
    """The text of a Python expression; `case.number` makes it unique."""
    if field.choices:
        first = next(iter(field.flatchoices), ("", ""))[0]
        return repr(getattr(first, "value", first))
    kind = field.get_internal_type()
    name = field.name
    if field.__class__.__name__ == "EmailField" or "email" in name:
        return 'f"case-{case.number}@example.com"'
    if field.__class__.__name__ == "URLField":
        return 'f"https://example.com/{case.number}"'
    if kind in ("CharField", "TextField", "SlugField"):
        most = field.max_length or 100
        if field.unique or most >= 20:
            return 'f"%s-{case.number}"' % name[: max(1, min(20, most - 10))]
        return repr("x" * min(most, 2))
    if kind == "UUIDField":
        return "uuid.uuid4()"
    if kind == "BooleanField":
        return "False"
    if kind == "DecimalField":
        return repr("1" + ("." + "0" * field.decimal_places if field.decimal_places else ""))
    if kind == "DateTimeField":
        return "timezone.now()"
    if kind == "DateField":
        return "timezone.localdate()"
    if kind == "JSONField":
        return "{}"
    if kind == "DurationField":
        return "datetime.timedelta(hours=1)"
    if kind == "FloatField":
        return "1.0"
    return "case.number" if field.unique else "1"
