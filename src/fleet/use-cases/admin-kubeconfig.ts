import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import { revealText } from '../../base/text/secret.ts';
import type { HostKubeconfig } from '../../kube/host-kubeconfig.ts';
import { decodeDataField, parseKubeconfig } from '../../kube/kubeconfig.ts';
import { ADMIN_CONF } from '../../kube/well-known.ts';
import { certificateBlocks } from '../../x509/pem-blocks.ts';
import type { HostTarget } from '../host-target.ts';
import { type HostConnections, type NodeCommandPorts, onHost } from '../ports.ts';
import { type AdminAccess, readAdminKubeconfig, withAdminAccess } from './admin-access.ts';

/** A local file for the kubeconfig of an administrator. */
export interface KubeconfigFile {
  readonly path: string;
  /** Replaces a file that is not the kubeconfig of this cluster alone. */
  readonly force: boolean;
}

/** Performs an action as the administrator of the cluster of a control plane. @throws as `withAdminAccess` */
export function asAdministrator<Result>(
  services: Pick<NodeCommandPorts, 'connectHost' | 'connectCluster' | 'signal'>,
  target: HostTarget,
  action: (access: AdminAccess) => Promise<Result>,
): Promise<Result> {
  return onHost(services, target, (host) => withAdminAccess(services, host, NO_CONTROL_PLANE, action));
}

const NO_CONTROL_PLANE = {
  message: `${ADMIN_CONF} does not exist: the host is not a control plane, or the file was removed`,
  hint: 'Name a control plane with --host, or create the file again: kubeletadm init phase kubeconfig admin',
};

/**
 * Checks before a command creates a cluster, or adds to it, that its kubeconfig may be written.
 * @throws AppError INPUT_UNWRITABLE; KUBECONFIG_EXISTS, exit code 2
 */
export async function requireKubeconfigFile(
  services: LocalFiles & Pick<HostConnections, 'connectHost'> & { readonly signal: AbortSignal },
  target: HostTarget,
  file: KubeconfigFile,
): Promise<void> {
  await services.requireWritable(file.path);
  if (file.force || !(await services.input.exists(file.path))) return;
  requireSame(
    file,
    await services.input.readText(file.path),
    await onHost(services, target, (host) => readAdminKubeconfig(host, services.signal)),
  );
}

/**
 * Writes the administrator's kubeconfig of a cluster, readable by its owner only.
 * @throws AppError INPUT_UNWRITABLE; KUBECONFIG_EXISTS, exit code 2, for a file that is not the kubeconfig of this cluster alone
 */
export async function writeAdminKubeconfig(
  services: LocalFiles,
  kubeconfig: HostKubeconfig,
  file: KubeconfigFile,
  reporter: Reporter,
): Promise<void> {
  const { path, force } = file;
  if (!force && (await services.input.exists(path))) requireSame(file, await services.input.readText(path), kubeconfig);
  await services.writeLocalFile(path, revealText(kubeconfig.text), { isPrivate: true });
  const message = `wrote ${path}, the kubeconfig of the cluster administrator (${kubeconfig.server})`;
  reporter.report({ level: 'info', code: 'KUBECONFIG_WRITTEN', message });
}

/** @param kubeconfig null: the cluster does not exist yet */
function requireSame({ path }: KubeconfigFile, text: string, kubeconfig: HostKubeconfig | null): void {
  const other = whyOther(path, text, kubeconfig);
  if (other === null) return;
  const problem: Problem = {
    code: 'KUBECONFIG_EXISTS',
    message: `${path} exists: ${other}. The file was not changed`,
    // Before the cluster exists, kubeconfig admin has nothing to write.
    hint:
      kubeconfig === null
        ? `Remove the file, or pass ${ANOTHER_FILE}`
        : `Pass ${ANOTHER_FILE}, or replace it with kubeletadm kubeconfig admin --force`,
  };
  throw new AppError(problem, { exitCode: 2 });
}

const ANOTHER_FILE = 'another file (kubectl uses several: export KUBECONFIG=FILE:OTHER-FILE)';

/** Why a file is not the kubeconfig of this cluster alone, as a clause; null: it is, or it is empty. */
function whyOther(path: string, text: string, kubeconfig: HostKubeconfig | null): string | null {
  if (text.trim() === '') return null;
  try {
    const { clusters, contexts, users } = parseKubeconfig(text, path);
    const caOf = (pem: string): string =>
      certificateBlocks(pem)
        .map((block) => block.pem.trim())
        .join('\n');
    if (clusters.length === 0) return 'it is not the kubeconfig of a cluster';
    const ca = kubeconfig === null ? null : caOf(kubeconfig.caPem);
    const other = clusters.find(({ caData }) => ca === null || caOf(decodeDataField(caData ?? '')) !== ca);
    if (other !== undefined && ca === null)
      return `it is a kubeconfig of an earlier or another cluster (another CA), ${other.server}; the cluster of this host does not exist yet`;
    if (other !== undefined) return `it is a kubeconfig of another cluster, ${other.server}`;
    const own = kubeconfig === null ? [] : parseKubeconfig(revealText(kubeconfig.text), path).users.map(({ name }) => name);
    const isMore = users.length > 1 || contexts.length > 1 || users.some(({ name }) => !own.includes(name));
    return isMore ? 'it has other contexts or users of this cluster' : null;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return 'it is not a kubeconfig';
  }
}
