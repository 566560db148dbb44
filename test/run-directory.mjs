import { accessSync, chmodSync, constants, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/**
 * A directory for one run of the tests, which takes with it what they leave behind. In `env` is what a run needs to know: its own place for temporary files, the
 * file for what is skipped and why, and where lab hosts, which outlast a run, find their base tree.
 */
export function makeRunDirectory() {
  const directory = mkdtempSync(join(tmpdir(), 'ka-test-'));
  // Programs of other users have to get in.
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
    /** Removes it, and says what was skipped. */
    end: () => {
      const lines = [...new Set(readFileSync(skips, 'utf8').split('\n').filter(Boolean))];
      rmSync(directory, { recursive: true, force: true });
      console.log(lines.length === 0 ? '\nnothing was skipped' : `\n${lines.join('\n')}`);
    },
  };
}

/** The directories of PATH that this user may search. After `su`, root's are in it, and a missing program is reported as EACCES then. */
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
