"""Which options does `chunkwise mpi-check` take, and what does it print?"""

from __future__ import annotations

import click

from chunkwise.cli.echo import echo, echo_json

EXAMPLES = """\b
Examples:
  chunkwise mpi-check
  mpirun -n 4 chunkwise mpi-check /scratch/me

\b
Exit code:
  0    nothing found that cannot work
  1    an error was found: it would fail, hang or spoil data
  2    wrong usage
"""


@click.command(epilog=EXAMPLES)
@click.argument("folder", metavar="[FOLDER]", default=".")
@click.option("--json", "as_object", is_flag=True, help="Print all of it as JSON.")
def command(folder: str, as_object: bool) -> int:
    """Say which MPI and HDF5 there are, and what is known to fail, hang or crawl with them.

    Start it as the program will be started, under mpirun or srun: then it also says where the
    ranks run, and whether all of them see FOLDER, the place of the file.
    """
    # Imported here, so that `--help` need not wait.
    from chunkwise_lab.mpi_check.check import check, lines

    report = check(folder)
    if report is None:
        return 0
    if as_object:
        echo_json(report.as_dict(), indent=1)
    else:
        for line in lines(report):
            echo(line)
    return 1 if report.failed else 0
