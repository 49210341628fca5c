"""All ops. Each is declared once, in the file of its family: `from trivium.ir import ops`, then `ops.Add(lhs, rhs)`."""

from trivium.ir.ops.arithmetic import *  # noqa: F403
from trivium.ir.ops.asynchronous import *  # noqa: F403
from trivium.ir.ops.batch_norm import *  # noqa: F403
from trivium.ir.ops.bitwise import *  # noqa: F403
from trivium.ir.ops.chlo import *  # noqa: F403
from trivium.ir.ops.chlo_broadcast import *  # noqa: F403
from trivium.ir.ops.chlo_programs import *  # noqa: F403
from trivium.ir.ops.collective import *  # noqa: F403
from trivium.ir.ops.control import *  # noqa: F403
from trivium.ir.ops.conversion import *  # noqa: F403
from trivium.ir.ops.convolution import *  # noqa: F403
from trivium.ir.ops.distribution import *  # noqa: F403
from trivium.ir.ops.dot_general import *  # noqa: F403
from trivium.ir.ops.dynamic import *  # noqa: F403
from trivium.ir.ops.elementwise import *  # noqa: F403
from trivium.ir.ops.gather import *  # noqa: F403
from trivium.ir.ops.indexing import *  # noqa: F403
from trivium.ir.ops.legacy import *  # noqa: F403
from trivium.ir.ops.linalg import *  # noqa: F403
from trivium.ir.ops.products import *  # noqa: F403
from trivium.ir.ops.quantization import *  # noqa: F403
from trivium.ir.ops.random import *  # noqa: F403
from trivium.ir.ops.reduction import *  # noqa: F403
from trivium.ir.ops.sdy import *  # noqa: F403
from trivium.ir.ops.shape import *  # noqa: F403
from trivium.ir.ops.transcendental import *  # noqa: F403
