import { resolve } from 'node:path';
import { AppError } from './base/errors.ts';
import type { TreeFile } from './base/local-files.ts';
import { pathInRoot } from './cli/adapters/path-in-root.ts';
import type { Services } from './cli/output/services.ts';
import { localTransport } from './host/adapters/transport-local.ts';
import { hostThrough } from './wiring-local.ts';

/**
 * Ports of a command line in another root directory, as after chroot(2): commands of the local host run below `root` with
 * chroot(8), and paths of the command line are paths below `root`. Needs root. Hosts over SSH are not affected.
 * @throws AppError ROOTFS_UNUSABLE (exit code 2)
 * @see kubeadm 1.36 --rootfs
 */
export async function servicesInRoot(services: Services, directory: string): Promise<Services> {
  const root = resolve(directory);
  const transport = localTransport({ root });
  const run = async (
    argv: readonly string[],
  ): Promise<{ readonly exitCode: number | null; readonly stdout: string; readonly stderr: string }> => {
    const { exitCode, stdout, stderr } = await transport.run(argv);
    return { exitCode, stdout: Buffer.from(stdout).toString('utf8'), stderr: Buffer.from(stderr).toString('utf8') };
  };
  const tried = await run(['/bin/sh', '-c', ':']);
  if (tried.exitCode !== 0) throw unusable(root, tried.stderr.trim());
  const below = async (path: string): Promise<string> => (path === '-' ? path : pathInRoot(root, path));
  const { input } = services;
  return {
    ...services,
    absolutePath: (path) => resolve('/', path),
    input: {
      ...input,
      readText: async (path) => input.readText(await below(path)),
      readTree: async (path, isDesired) => {
        // The last part of the path is not followed: a link instead of the directory is rejected.
        const names = await input.readTree(await pathInRoot(root, path, { followLast: false }), () => false);
        const files: TreeFile[] = [];
        for (const { path: name, text } of names)
          files.push({ path: name, text: isDesired(name) ? await input.readText(await below(`${path}/${name}`)) : text });
        return files;
      },
      exists: async (path) => input.exists(await below(path)),
      isDirectory: async (path) => input.isDirectory(await below(path)),
    },
    writeLocalFile: async (path, text, options) => services.writeLocalFile(await below(path), text, options),
    requireWritable: async (path, options) => services.requireWritable(await below(path), options),
    // A kubeconfig of an image is not that of the operator: it may name programs, and files of the local host.
    connectCluster: (target) => services.connectCluster({ ...target, root: { directory: root, pathOf: (path) => pathInRoot(root, path) } }),
    connectHost: async (target, reporter) =>
      target.member === undefined && target.address === undefined
        ? hostThrough(localTransport({ root }), target, reporter)
        : services.connectHost(target, reporter),
    runLocal: (argv, options) => services.runLocal(['chroot', root, ...argv], options),
  };
}

function unusable(root: string, why: string): AppError {
  const message = `--rootfs ${root}: cannot use the directory as root directory${why === '' ? '' : `: ${why}`}`;
  const hint = 'Run as root, and name a directory with a system that has /bin/sh';
  return new AppError({ code: 'ROOTFS_UNUSABLE', message, hint }, { exitCode: 2 });
}
