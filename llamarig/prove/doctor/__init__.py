"""What is wrong with a machine, from what its own tools say: pure rules over a bundle of their words.

A bundle is collected on a host (``rig_doctor``), read from a file, or made of a pasted error. Each rule looks at one
cause and gives diagnoses with evidence, cause and what to do.
"""

from llamarig.prove.doctor.bundle import Bundle, load_bundle
from llamarig.prove.doctor.diagnosis import Diagnosis
from llamarig.prove.doctor.examine import examine, examine_text

__all__ = ["Bundle", "Diagnosis", "examine", "examine_text", "load_bundle"]
