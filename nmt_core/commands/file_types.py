"""Types of options that name models and logs: which files are read or written for them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from nmt_core.files import Input, InputFile, Output
from nmt_core.model_directory.directory import NAMES, own_files


class ModelFolder(Input):
    """The type of an argument that names a model folder, or several with commas."""

    def files(self) -> Iterable[str]:
        """The models' own files; whatever else is in a folder may be written."""
        for folder in self.split(","):
            yield from own_files(folder)


class NamedModel(Input):
    """The type of an argument ``NAME=DIR`` or ``NAME=DIR,DIR``."""

    def files(self) -> Iterable[str]:
        """Those of the models."""
        return ModelFolder(self.partition("=")[2]).files()


class ModelsFolder(Input):
    """The type of an argument that names a folder of model folders."""

    def files(self) -> Iterable[str]:
        """Those of all models."""
        folders = [path for path in InputFile(self).files() if path != self]
        return (file for folder in folders for file in own_files(folder))


class NamedLexicon(Input):
    """The type of an argument ``NAME=FILE`` or ``NAME=FILE,RULE``."""

    def files(self) -> Iterable[str]:
        """The lexicon."""
        return (self.partition("=")[2].partition(",")[0],)


class NewModelFolder(Output):
    """The type of an argument that names a model folder to make."""

    def files(self) -> Iterable[str]:
        """The files that a model may have."""
        return (os.path.join(self, name) for name in NAMES)


class Log(Output):
    """The type of an argument that names a file to append to, ``-`` for standard error."""

    def files(self) -> Iterable[str]:
        """The file."""
        return () if self == "-" else (str(self),)
