import { LOCK_FILE } from './commit/commit-program.ts';
import { copyDirectory, requireDirectory } from './copy-directory.ts';
import { importImages, pullImage, removePods, STOP_SECONDS, stopContainers } from './cri/runtime-commands.ts';
import { hookText, runHook } from './hooks.ts';
import { downloadFile, extractArchive, installPackages } from './install/operations.ts';
import type { CommandOperation, Operation, OperationOf, RunCommand } from './operation/operation.ts';

/** Descriptions and commands for one kind of operation. Texts are clauses for messages. */
interface OperationKind<O> {
  readonly done: (operation: O) => string;
  /** Text for a failure; absent: the failed command. */
  readonly failed?: (operation: O) => string;
  /** The command on the host; absent: the remote program has functions for it. */
  readonly command?: (operation: O) => RunCommand;
  readonly extraMs?: number | ((operation: O) => number);
}

const run = (argv: readonly string[], what?: string): RunCommand => ({ kind: 'run', argv, ...(what === undefined ? {} : { what }) });
const systemctl = (...words: readonly string[]): RunCommand => run(['systemctl', ...words]);

/**
 * Every kind needs a command or a text for its failure. systemd waits 90 s for a unit to stop, and again to start; a node
 * has up to 110 Pods.
 */
const OPERATION_KINDS: {
  readonly [K in Operation['kind']]: OperationKind<OperationOf<K>> &
    Required<Pick<OperationKind<OperationOf<K>>, OperationOf<K> extends CommandOperation ? 'command' : 'failed'>>;
} = {
  'write-file': {
    done: (operation) => `${'action' in operation && operation.action === 'create' ? 'created' : 'updated'} ${operation.path}`,
    failed: ({ path }) => `cannot write ${path}`,
  },
  'put-file': {
    done: ({ path, content }) => `put ${path} (${(content.size / 1e6).toFixed(1)} MB)`,
    failed: ({ path }) => `cannot write ${path}`,
  },
  'upload-file': {
    done: ({ path, content }) => `uploaded ${path} (${(content.size / 1e6).toFixed(1)} MB)`,
    failed: ({ path }) => `cannot write ${path}`,
    extraMs: 300_000,
  },
  'make-directory': { done: ({ path }) => `created directory ${path}`, failed: ({ path }) => `cannot create directory ${path}` },
  'remove-file': { done: ({ path }) => `removed ${path}`, failed: ({ path }) => `cannot remove ${path}` },
  'move-file': { done: ({ path, to }) => `moved ${path} to ${to}`, failed: ({ path, to }) => `cannot move ${path} to ${to}` },
  'empty-directory': { done: ({ path }) => `emptied ${path}`, failed: ({ path }) => `cannot empty ${path}` },
  'remove-directory': {
    done: ({ path }) => `removed ${path} and its content`,
    failed: ({ path }) => `cannot remove directory ${path}`,
  },
  'remove-empty-directory': {
    done: ({ path }) => `removed ${path}, if it was empty`,
    failed: ({ path }) => `cannot remove directory ${path}`,
  },
  'unmount-below': {
    done: ({ path }) => `unmounted the file systems below ${path}`,
    failed: ({ path }) => `cannot unmount the file systems below ${path}`,
    extraMs: 60_000,
  },
  run: { done: ({ what, argv }) => `ran ${what ?? argv.join(' ')}`, command: (operation) => operation },
  'remove-pods': {
    done: ({ criSocket }) => `removed the Pods of ${criSocket}`,
    command: ({ criSocket, mayStay }) => run(removePods(criSocket, mayStay === true), `removing the Pods of ${criSocket}`),
    extraMs: 1_200_000,
  },
  'restart-static-pod': {
    done: ({ component }) => `stopped the container of ${component}, which the kubelet starts again`,
    command: ({ component, criSocket }) => run(stopContainers(criSocket, component), `stopping the container of ${component}`),
    extraMs: (STOP_SECONDS + 20) * 1000,
  },
  'pull-image': {
    done: ({ image }) => `pulled ${image}`,
    command: ({ image, criSocket }) => run(pullImage(criSocket, image), `pulling ${image}`),
    extraMs: 900_000,
  },
  'import-images': {
    done: ({ images }) => `imported ${images.join(', ')}`,
    command: ({ images, criSocket, path }) => run(importImages(criSocket, path), `importing ${images.join(', ')}`),
    extraMs: 900_000,
  },
  'copy-directory': {
    done: ({ path, to }) => `copied ${path} to ${to}`,
    command: ({ path, to }) => run(copyDirectory(path, to), `copying ${path} to ${to}`),
    extraMs: 1_800_000,
  },
  'require-directory': { done: ({ path }) => `${path} exists`, command: ({ path }) => run(requireDirectory(path), `checking ${path}`) },
  'daemon-reload': { done: () => 'ran systemctl daemon-reload', command: () => systemctl('daemon-reload') },
  'enable-unit': { done: ({ unit }) => `enabled ${unit}`, command: ({ unit }) => systemctl('enable', '--quiet', unit) },
  'restart-unit': { done: ({ unit }) => `restarted ${unit}`, command: ({ unit }) => systemctl('restart', unit), extraMs: 180_000 },
  'stop-unit': { done: ({ unit }) => `stopped ${unit}`, command: ({ unit }) => systemctl('stop', unit), extraMs: 90_000 },
  'start-unit': { done: ({ unit }) => `started ${unit}`, command: ({ unit }) => systemctl('start', unit), extraMs: 90_000 },
  'install-packages': {
    done: ({ packages }) => `installed ${packages.join(', ')}`,
    command: ({ manager, packages, repositories }) => installPackages(manager, packages, repositories),
    extraMs: 1_200_000,
  },
  'hold-packages': {
    done: ({ packages }) => `holds ${packages.join(', ')} at the installed version`,
    command: ({ packages }) => run(['apt-mark', 'hold', ...packages]),
  },
  'download-file': { done: ({ path }) => `downloaded ${path}`, command: downloadFile, extraMs: 600_000 },
  'extract-archive': {
    done: ({ path, to }) => `unpacked ${path} to ${to}`,
    command: ({ path, to }) => extractArchive(path, to),
    extraMs: 120_000,
  },
  'load-module': {
    done: ({ module }) => `loaded the kernel module ${module}`,
    command: ({ module }) => run(['modprobe', module]),
  },
  'set-sysctl': {
    done: ({ name, value }) => `set ${name} = ${value}`,
    command: ({ name, value }) => run(['sysctl', '-q', '-w', `${name}=${value}`]),
  },
  'turn-off-swap': { done: () => 'turned swap off', command: () => run(['swapoff', '-a']), extraMs: 300_000 },
  'run-hook': {
    done: ({ hook, command }) => `ran the hook ${hook}: ${hookText(command)}`,
    command: runHook,
    extraMs: ({ timeoutSeconds }) => timeoutSeconds * 1000,
  },
  'append-journal': { done: ({ path }) => `recorded the change in ${path}`, failed: ({ path }) => `cannot write ${path}` },
  'take-lock': { done: () => 'took the lock of the host', failed: () => `cannot take the lock ${LOCK_FILE}` },
  'release-lock': { done: () => 'released the lock of the host', failed: () => `cannot release the lock ${LOCK_FILE}` },
  'arm-revert': {
    done: () => 'set up the automatic rollback',
    failed: () => 'cannot set up the automatic rollback in /var/lib/kubeletadm (--no-confirm turns it off)',
  },
  'check-commit': {
    done: () => 'checked that the change still waits for its confirmation',
    failed: () => 'cannot continue the change of this run',
  },
  'confirm-commit': { done: () => 'confirmed the change of an earlier run', failed: () => 'cannot confirm the change' },
  'revert-commit': { done: () => 'rolled back the change', failed: () => 'cannot roll back the change' },
};

function kindOf<O extends Operation>(operation: O): OperationKind<Operation> {
  return OPERATION_KINDS[operation.kind] as unknown as OperationKind<Operation>;
}

export function describeDone(operation: Operation): string {
  return kindOf(operation).done(operation);
}

export function describeFailed(operation: Operation): string {
  const { failed, command } = kindOf(operation);
  if (failed !== undefined) return failed(operation);
  const run = command?.(operation);
  return `${run?.what ?? run?.argv.join(' ') ?? operation.kind} failed`;
}

/** For the log: a command with its arguments, others by kind and path, never with the content of a file. */
export function describePending(operation: Operation): string {
  const command = kindOf(operation).command?.(operation);
  if (command !== undefined) return `runs ${command.argv.join(' ')}`;
  return 'path' in operation ? `${operation.kind} ${operation.path}` : operation.kind;
}

export function isCommand(operation: Operation): operation is CommandOperation {
  return kindOf(operation).command !== undefined;
}

export function commandOf(operation: CommandOperation): RunCommand {
  return kindOf(operation).command?.(operation) as RunCommand;
}

export function timeoutMsOf(operations: readonly Operation[]): number {
  return operations.reduce((sum, operation) => {
    const { extraMs = 0 } = kindOf(operation);
    return sum + (typeof extraMs === 'number' ? extraMs : extraMs(operation));
  }, BASE_MS);
}

const BASE_MS = 120_000;
