"""Answers of a certain form: a type, a choice, a template, an object while it is written."""

from pydantic import BaseModel, Field

import headrace


class Wheel(BaseModel):
    """A water wheel."""

    kind: str = Field(max_length=20)
    percent: int = Field(ge=0, le=100, description="efficiency")


NOTE = "The overshot wheel of the old mill turns 63 percent of the water's energy into work."

wheel = headrace.generate(NOTE, constraint=Wheel, max_tokens=80)
print("a type:", wheel.parsed)

sure = headrace.generate(f"{NOTE} Is that a lot?", constraint=["yes", "no", "hard to say"])
print("a choice:", sure.parsed)

form = headrace.template("Wheel: {kind}\nEfficiency: {percent:int} %\nRunning: {running:bool}\n")
filled = headrace.generate(NOTE, constraint=form, max_tokens=60)
print("a template:", filled.parsed)
print(f"{filled.usage.forced_tokens} of {filled.usage.completion_tokens} tokens were forced")

for part in headrace.stream_objects(NOTE, Wheel, max_tokens=80):
    print("so far:" if not part.is_final else "whole:", part.value)
