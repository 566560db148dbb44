import { spawnSync } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { isAppError } from '../../base/errors.ts';
import { systemErrorText } from '../../base/system-error.ts';
import { sshConfigInvalid } from '../../host/host-problems.ts';
import type { SshConfigFile, SshConfigLine } from '../config.ts';
import { readSshConfigLines } from '../config.ts';
import { compileGlobSegment } from '../pattern.ts';
import type { SshConfig } from '../resolve-target.ts';

const SYSTEM_CONFIG = '/etc/ssh/ssh_config';
const MAX_INCLUDE_DEPTH = 16;

/**
 * Reads ~/.ssh/config and /etc/ssh/ssh_config, or the given file, with all included files: once for any
 * number of hosts.
 * @param options.configFile replaces both default files; `none` for no file, as with `ssh -F`
 * @param options.homeDirectory default: that of the passwd database, as for ssh; HOME is ignored
 * @returns the configuration for `resolveSshTarget` (ssh/resolve-target.ts)
 * @throws AppError SSH_CONFIG_INVALID when a given file does not exist, a file is unreadable or writable by
 *   others, or a line is malformed
 * @see ssh_config(5)
 */
export async function loadSshConfig(options: {
  readonly configFile?: string | undefined;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory?: string;
}): Promise<SshConfig> {
  const { configFile, variables } = options;
  const { username, uid, homedir, shell } = userInfo();
  const homeDirectory = options.homeDirectory ?? homedir;
  const sshDirectory = join(homeDirectory, '.ssh');
  const given = configFile === undefined || configFile === 'none' ? [] : [configFile];
  const roots: readonly Root[] =
    configFile === undefined
      ? [
          { path: join(sshDirectory, 'config'), includeDirectory: sshDirectory, isPrivate: true },
          { path: SYSTEM_CONFIG, includeDirectory: dirname(SYSTEM_CONFIG), isPrivate: false },
        ]
      : given.map((path) => ({ path: resolve(path), includeDirectory: sshDirectory, isPrivate: false }));
  const files = await Promise.all(
    roots.map((root) => readConfigFile(root.path, { root, homeDirectory, isRequired: configFile !== undefined, depth: 0 })),
  );
  return {
    files: files.filter((file) => file !== null),
    environment: {
      homeDirectory,
      workingDirectory: process.cwd(),
      userName: username,
      userId: uid,
      localHostName: hostname(),
      variables,
    },
    exec: (command) => succeeds(variables.SHELL || shell || '/bin/sh', command),
  };
}

interface Root {
  readonly path: string;
  /** Base of relative paths of `Include`. */
  readonly includeDirectory: string;
  /** Rejected when others can write to it, as ssh does with a user's own files. */
  readonly isPrivate: boolean;
}

interface Reading {
  readonly root: Root;
  readonly homeDirectory: string;
  readonly isRequired: boolean;
  readonly depth: number;
}

async function readConfigFile(path: string, reading: Reading): Promise<SshConfigFile | null> {
  const text = await readText(path, reading);
  if (text === null) return null;
  const lines = readSshConfigLines(text, path);
  return { path, lines: await Promise.all(lines.map((line) => (line.keyword === 'include' ? include(line, reading) : line))) };
}

async function readText(path: string, { root, isRequired }: Reading): Promise<string | null> {
  try {
    const { uid, mode } = await stat(path);
    if (root.isPrivate && ((uid !== 0 && uid !== process.getuid?.()) || (mode & 0o022) !== 0))
      throw sshConfigInvalid({ file: path, message: 'other users can write to this file', hint: `Run chmod go-w ${path}` });
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isAppError(error)) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    if (!isRequired && (code === 'ENOENT' || code === 'ENOTDIR')) return null;
    throw sshConfigInvalid({
      file: path,
      message: `cannot be read: ${systemErrorText(error)}`,
      hint: 'Check the path and the permissions',
      cause: error,
    });
  }
}

async function include(line: SshConfigLine, reading: Reading): Promise<SshConfigLine> {
  const { root, homeDirectory, depth } = reading;
  if (depth >= MAX_INCLUDE_DEPTH)
    throw sshConfigInvalid({
      file: line.file,
      line: line.line,
      message: 'Include is nested too deeply',
      hint: 'Check for a file that includes itself',
    });
  const paths = await Promise.all(
    line.args.map((pattern) =>
      expandGlob(
        resolve(
          root.includeDirectory,
          pattern.replace(/^~(?=\/)/, () => homeDirectory),
        ),
      ),
    ),
  );
  const included = await Promise.all(paths.flat().map((path) => readConfigFile(path, { ...reading, isRequired: false, depth: depth + 1 })));
  return { ...line, included: included.filter((file) => file !== null) };
}

/** Paths that match an absolute pattern, sorted. */
async function expandGlob(pattern: string): Promise<readonly string[]> {
  let paths = ['/'];
  for (const segment of pattern.split('/').filter(Boolean).map(compileGlobSegment)) {
    const next = paths.map(async (path) => {
      if (segment.literal !== null) return [join(path, segment.literal)];
      const names = await readdir(path).catch(() => []);
      return names.filter((name) => segment.matches(name)).map((name) => join(path, name));
    });
    paths = (await Promise.all(next)).flat();
  }
  return paths.sort();
}

function succeeds(shell: string, command: string): boolean {
  return spawnSync(shell, ['-c', command], { stdio: 'ignore' }).status === 0;
}
