import { cleanPath } from '../../base/text/clean-path.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import { ETCD_DATA_DIR } from '../../kube/well-known.ts';
import { textAt } from '../documents/values.ts';
import type { Rule } from './rule.ts';

/** Directories of the system, with all directories in them. */
const SYSTEM_TREES = [
  '/bin',
  '/boot',
  '/dev',
  '/etc',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/proc',
  '/root',
  '/run',
  '/sbin',
  '/sys',
  '/tmp',
  '/usr',
  '/var/cache',
  '/var/lib/cni',
  '/var/lib/containerd',
  '/var/lib/containers',
  '/var/lib/docker',
  ETCD_DATA_DIR,
  '/var/lib/kubeletadm',
  '/var/log/audit',
  '/var/log/containers',
  '/var/log/journal',
  '/var/run',
  '/var/spool',
  '/var/tmp',
];

/** Directories of the kubelet, with all directories in them. */
const KUBELET_TREES = [
  'checkpoints',
  'device-plugins',
  'image_manager',
  'kubeletadm-agent',
  'pki',
  'plugins',
  'plugins_registry',
  'pod-resources',
  'pods',
].map((name) => `/var/lib/kubelet/${name}`);

/** Directories that contain those of other programs or users; a new directory in them is usable. */
const SHARED = /^\/(?:home(?:\/[^/]+)?|media|mnt|opt|srv|var|var\/(?:lib|lib\/kubelet|local|log|opt))?$/;

/** Directories in which every user can create files. */
const WRITABLE_TREES = ['/dev', '/run/lock', '/run/user', '/tmp', '/var/tmp'];

/**
 * Why the kubelet must not use an absolute path as `podLogsDir`: it deletes each entry whose name does not end in the
 * UID of a pod of the node.
 * @returns a clause; null: permitted, unless the directory has other content
 * @see kubernetes/kubernetes pkg/kubelet/kuberuntime/kuberuntime_gc.go evictPodLogsDirectories (1.30 to 1.36)
 */
export function podLogsDirIssue(path: string): string | null {
  const clean = cleanPath(path);
  const isSystem = SHARED.test(clean) || [...SYSTEM_TREES, ...KUBELET_TREES].some((tree) => isIn(clean, tree));
  return isSystem ? `${quoteValue(path)} is a directory of the system, and the kubelet would delete its content` : null;
}

/**
 * Why the kubelet must not use an absolute path as `volumePluginDir`: it runs the programs in the directory as root.
 * @see kubernetes/kubernetes pkg/volume/flexvolume/probe.go (1.36)
 */
export function volumePluginDirIssue(path: string): string | null {
  const isWritable = WRITABLE_TREES.some((tree) => isIn(cleanPath(path), tree));
  return isWritable ? `${quoteValue(path)} can be written by every user, and the kubelet would run the programs in it as root` : null;
}

function isIn(path: string, tree: string): boolean {
  return path === tree || path.startsWith(`${tree}/`);
}

/** Code of the rules below: kubelets accept these values. */
export const UNSAFE_DIRECTORY = 'KUBELET_UNSAFE_DIRECTORY';

/** Directories that are refused although the kubelet accepts them. A relative path depends on the file. */
export const DIRECTORY_RULES: readonly Rule[] = [
  {
    id: UNSAFE_DIRECTORY,
    since: 30,
    check: ({ config }) =>
      found('podLogsDir', podLogsDirIssue, textAt(config, 'podLogsDir'), 'for example /var/log/pods or /data/pod-logs'),
  },
  {
    id: UNSAFE_DIRECTORY,
    since: 19,
    check: ({ config }) => found('volumePluginDir', volumePluginDirIssue, textAt(config, 'volumePluginDir'), 'owned by root'),
  },
];

function found(path: string, issueOf: (directory: string) => string | null, value: string, example: string) {
  const issue = value.startsWith('/') ? issueOf(value) : null;
  return issue === null ? [] : [{ path, message: issue, hint: `Use a directory of its own, ${example}` }];
}
