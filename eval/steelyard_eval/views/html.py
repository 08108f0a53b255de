"""A result as a piece of a page, such as a notebook shows: every text is escaped by Jinja."""

from __future__ import annotations

import shlex
from functools import cache

from jinja2 import Environment, StrictUndefined, Template

from steelyard_eval.common.console import brief
from steelyard_eval.common.markup import legible
from steelyard_eval.result.sentences import heading, say
from steelyard_eval.result.structs import Result
from steelyard_eval.views.sheets import sheets

SECTION = """<p><b>{{ said }}</b></p>
{% if because %}<p>{{ because }}</p>
{% endif %}{% if steps %}<ul class="steps">{% for what, command in steps %}<li>{{ what }}\
{% if command %}: <code>{{ command }}</code>{% endif %}</li>{% endfor %}</ul>
{% endif %}{% if formula %}<p><code>{{ formula }}</code></p>
{% endif %}{% for sheet in sheets %}<table><caption>{{ sheet.title }}</caption>
<tr>{% for column in sheet.columns %}<th>{{ column.name }}</th>{% endfor %}</tr>
{% for row in sheet.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</table>
{% for line in sheet.legend.splitlines() %}<p>{{ line }}</p>
{% endfor %}{% endfor %}{% for note in notes %}<p>{{ note }}</p>
{% endfor %}"""


def render(result: Result) -> str:
    """The answer, what to do, the short tables, notes."""
    answer = result.answer
    return _template().render(
        said=say(answer),
        because=" ".join(map(say, answer.because)),
        steps=[(say(step), shlex.join(step.command)) for step in answer.steps],
        formula=brief(answer.formula),
        sheets=sheets(result, short=True),
        notes=[heading("note", {"text": say(notice)}) for notice in result.notices],
    )


@cache
def _template() -> Template:
    """Every value has its control characters escaped and is then autoescaped."""
    made = Environment(
        autoescape=True,
        finalize=lambda value: legible(value) if isinstance(value, str) else value,
        undefined=StrictUndefined,
    )
    return made.from_string(SECTION)
