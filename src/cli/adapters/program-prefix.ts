import { existsSync, realpathSync } from 'node:fs';
import { basename, delimiter, dirname, join, relative } from 'node:path';
import { quoteShell } from '../../base/text/shell-quote.ts';

/**
 * The words that start this program from the working directory, for command lines that are printed to be copied:
 * `kubeletadm` where it is on the PATH, otherwise as it was started (`npx tsx src/bin.ts`, `node dist/kubeletadm.mjs`).
 * @param started the interpreter and the script as the process was started; an executable has no script
 */
export function programPrefix(started: {
  readonly executable: string;
  readonly script: string | undefined;
  readonly path: string;
  readonly directory: string;
}): string {
  const { script = '', directory } = started;
  const isExecutable = script === '' || !/\.[cm]?[jt]s$/.test(realPath(script));
  const program = realPath(isExecutable ? started.executable : script);
  const found = started.path
    .split(delimiter)
    .map((folder) => join(folder, 'kubeletadm'))
    .find(existsSync);
  if (found !== undefined && realPath(found) === program) return 'kubeletadm';
  const route = relative(directory, program);
  const shown = route.startsWith('..') ? program : route;
  if (isExecutable) return quoteShell(shown.includes('/') ? shown : `./${shown}`);
  if (!program.endsWith('.ts')) return `node ${quoteShell(shown)}`;
  const prefix = route.startsWith('..') ? `--prefix ${quoteShell(dirname(dirname(program)))} ` : '';
  return `npx ${prefix}tsx ${quoteShell(shown)}`;
}

/** The prefix of the running process. npm starts it in the directory of the package, wherever the user is (INIT_CWD). */
export function ownPrefix(): string {
  const { argv, execPath, env } = process;
  const isScript = basename(execPath).startsWith('node');
  return programPrefix({
    executable: execPath,
    script: isScript ? argv[1] : undefined,
    path: env.PATH ?? '',
    directory: env.INIT_CWD || process.cwd(),
  });
}

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}
