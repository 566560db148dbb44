import { defaultRoute } from '../../host/facts/default-route.ts';
import { combineFacts, defineFact, type Fact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FactQuery, FileFact } from '../../host/facts/query.ts';
import { unitActive } from '../../host/facts/unit.ts';
import { MANIFESTS_DIR } from '../../kube/well-known.ts';
import { caDirectoriesIn } from '../control-plane/model.ts';
import { CA_MOUNT_DIRS, type StaticPodName } from '../control-plane/paths.ts';
import { hostClock } from './host-clock.ts';

/** Capacity of the host. Null: not known (an image). */
const hostSize = defineFact(
  { cpus: { kind: 'command', argv: ['nproc'] }, memory: { kind: 'file', path: '/proc/meminfo' } },
  ({ cpus, memory }): { readonly cpus: number | null; readonly memoryBytes: number | null } => ({
    cpus: cpus.exitCode === 0 ? Number(cpus.stdout.trim()) : null,
    memoryBytes: parseMemTotal(memory?.content ?? ''),
  }),
);

/** Bytes from the `MemTotal` line of /proc/meminfo. */
function parseMemTotal(text: string): number | null {
  const match = /^MemTotal: {1,64}(\d{1,20}) kB/m.exec(text);
  return match ? Number(match[1]) * 1024 : null;
}

const STATIC_PODS: readonly StaticPodName[] = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'etcd'];

/** Facts about a host for a control plane, in addition to the facts about any node. */
export type ControlPlaneHost = ReturnType<typeof controlPlaneHost> extends Fact<infer T> ? T : never;

/**
 * Facts about a host for a control plane.
 * @param etcdDataDir null: etcd does not run on the host
 * @param files additional required files, e.g. the client certificates of external etcd
 */
export function controlPlaneHost(etcdDataDir: string | null, files: readonly string[]) {
  return combineFacts({
    route: defaultRoute,
    size: hostSize,
    clock: hostClock,
    firewalldActive: unitActive('firewalld'),
    caDirectories: caDirectoriesOf(),
    manifests: fileFacts(STATIC_PODS.map((name) => `${MANIFESTS_DIR}/${name}.yaml`)),
    /** Names in the etcd data directory; null: it does not exist. */
    etcdData: listOf(etcdDataDir),
    files: fileFacts(files),
  });
}

function listOf(directory: string | null): Fact<readonly string[] | null> {
  if (directory === null) return defineFact({}, () => null);
  return defineFact({ names: { kind: 'list', path: directory } }, ({ names }) => names);
}

/** The CA directories of the host that control plane Pods mount. */
export function caDirectoriesOf(): Fact<readonly string[]> {
  const queries: Record<string, FactQuery> = {};
  for (const path of CA_MOUNT_DIRS) queries[path] = { kind: 'file', path, content: false };
  return defineFact(queries, (answers) => caDirectoriesIn((path) => (answers[path] as FileFact | null) !== null));
}
