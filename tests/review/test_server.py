"""Who may ask what: a real server, asked as a browser, a stranger and a rascal would."""

import json
import os
import shutil
import stat

import numpy as np
import pytest
from PIL import Image
from tests.review.folders import digits_folder, text_folder, write_folder
from tests.review.serving import Server

from prune4rel.data.files import list_images
