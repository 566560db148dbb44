import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../base/errors.ts';
import { systemErrorText } from '../../base/system-error.ts';
import type { HostEntry } from '../../kubeadm/user-data/model.ts';

/** Providers limit user data to some kilobytes: more is a directory given by mistake, such as the root of a system. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_ENTRIES = 5000;

/**
 * Reads a directory as the root directory of a host. Files of an unprivileged user, which could not give them to root, belong
 * to root.
 * @returns in the order of their paths
 * @throws AppError INPUT_UNREADABLE, INPUT_NOT_A_DIRECTORY, INPUT_TOO_LARGE or USER_DATA_UNUSABLE (exit code 2)
 */
export async function readHostEntries(root: string): Promise<readonly HostEntry[]> {
  const user = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
  const owned = ({ uid, gid }: { readonly uid: number; readonly gid: number }): { uid: number; gid: number } =>
    user.uid !== 0 && uid === user.uid ? { uid: 0, gid: gid === user.gid ? 0 : gid } : { uid, gid };
  const entries: HostEntry[] = [];
  let bytes = 0;
  const walk = async (directory: string): Promise<void> => {
    for (const name of (await readdir(join(root, directory))).toSorted()) {
      const path = `${directory}/${name}`;
      const info = await lstat(join(root, path));
      const placed = { path, mode: info.mode & 0o7777, ...owned(info) };
      bytes += info.isFile() ? info.size : 0;
      if (bytes > MAX_BYTES || entries.length >= MAX_ENTRIES) throw tooLarge(root);
      if (info.isDirectory()) {
        entries.push({ kind: 'directory', ...placed });
        await walk(path);
      } else if (info.isFile()) entries.push({ kind: 'file', ...placed, content: await readFile(join(root, path)) });
      else if (info.isSymbolicLink()) entries.push({ kind: 'link', path, target: await readlink(join(root, path)) });
      else throw special(path);
    }
  };
  try {
    if (!(await lstat(root)).isDirectory()) throw notADirectory(root);
    await walk('');
    return entries;
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    const message = `cannot read ${root}: ${systemErrorText(cause)}`;
    throw new AppError({ code: 'INPUT_UNREADABLE', message, hint: 'Check the path and its permissions' }, { exitCode: 2, cause });
  }
}

function notADirectory(root: string): AppError {
  const message = `${root} is not a directory`;
  return new AppError({ code: 'INPUT_NOT_A_DIRECTORY', message, hint: 'Pass the directory itself, not a link to it' }, { exitCode: 2 });
}

function tooLarge(root: string): AppError {
  const message = `${root} has more than ${MAX_BYTES} bytes or ${MAX_ENTRIES} files`;
  const hint = 'Pass a directory that contains only files of join --rootfs, not the root of a system';
  return new AppError({ code: 'INPUT_TOO_LARGE', message, hint }, { exitCode: 2 });
}

function special(path: string): AppError {
  const message = `${path} is a device, a socket or a pipe, which user data cannot contain`;
  return new AppError({ code: 'USER_DATA_UNUSABLE', message, hint: `Remove ${path} from the directory` }, { exitCode: 2 });
}
