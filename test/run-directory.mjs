import { accessSync, chmodSync, constants, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/**
 * A temporary directory for one test run, removed at its end. `env` contains the settings of the run: its directory for
 * temporary files, the file that collects skipped tests with reasons, and the directory in which lab hosts, which outlive
 * a run, keep their base tree.
 */
export function makeRunDirectory() {
  const directory = mkdtempSync(join(tmpdir(), 'ka-test-'));
  // Programs of other users need access.
  chmodSync(directory, 0o755);
  const temporary = join(directory, 'tmp');
  mkdirSync(temporary);
  chmodSync(temporary, 0o1777);
  const skips = join(directory, 'skips');
  writeFileSync(skips, '');
  return {
    directory,
    env: {
      ...process.env,
      PATH: searchable(process.env.PATH ?? ''),
      TMPDIR: temporary,
      KUBELETADM_TEST_SKIPS: skips,
      KUBELETADM_LAB_TMPDIR: tmpdir(),
    },
    /** Removes the directory, and prints the skipped tests. */
    end: () => {
      const lines = [...new Set(readFileSync(skips, 'utf8').split('\n').filter(Boolean))];
      rmSync(directory, { recursive: true, force: true });
      console.log(lines.length === 0 ? '\nnothing was skipped' : `\n${lines.join('\n')}`);
    },
  };
}

/**
 * The directories of PATH that this user may search. After `su`, PATH contains root's directories, and a missing program
 * is then reported as EACCES.
 */
function searchable(path) {
  const mayBeSearched = (directory) => {
    try {
      accessSync(directory, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  return path.split(delimiter).filter(mayBeSearched).join(delimiter);
}
