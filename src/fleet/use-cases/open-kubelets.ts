import type { RunTime } from '../../base/clock.ts';
import { formatProblem, type Problem, usageError } from '../../base/errors.ts';
import type { Host } from '../../host/access/host.ts';
import type { TextOptions, TextVerdict } from '../../kubeadm/use-cases/validate-documents.ts';
import { type Catalogue, formatMinor, type Minor } from '../../kubelet/catalogue/catalogue.ts';
import { findKubelet, type KubeletToQuery, queryKubelet } from '../../kubelet/effective/query-kubelet.ts';
import { compareVerdicts } from '../../kubelet/validate/compare-verdicts.ts';
import { UNSAFE_DIRECTORY } from '../../kubelet/validate/directory-rules.ts';
import type { NamedHostPorts } from '../ports.ts';
import { commandLimit, type HostsRequest } from './host-access.ts';
import { readHostTargets } from './named-hosts.ts';

/** Which kubelets validate files as well. */
export interface KubeletsRequest {
  /** The path of a kubelet binary; undefined: that of the running kubelet. */
  readonly kubelet: string | undefined;
  readonly hosts: HostsRequest;
}

/** Kubelets that validate files. */
export interface KubeletsToQuery {
  /**
   * Validates a file by the rules of each kubelet, runs each kubelet on the file, and reports differences.
   * @param validate kubeletadm's own verdict for a kubelet version
   */
  validate(validate: (asked: Asked) => Promise<TextVerdict>, file: string): Promise<readonly Problem[]>;
  close(): Promise<void>;
}

type Asked = Pick<TextOptions, 'chosen' | 'flags' | 'running' | 'cgroupVersion'>;

/**
 * Opens the kubelets of `--kubelet` and `--host`.
 * @throws AppError USAGE when `--kubernetes-version` differs from the version of a kubelet; errors of
 * connecting and of finding a kubelet
 */
export async function openKubelets(
  services: NamedHostPorts & Pick<RunTime, 'signal'>,
  { kubelet: path, hosts: requested }: KubeletsRequest,
  { catalogue, chosen }: { readonly catalogue: Catalogue; readonly chosen: Minor | null },
): Promise<KubeletsToQuery> {
  const { signal } = services;
  const hosts: Host[] = [];
  const close = async (): Promise<void> => {
    for (const host of hosts) await host.close();
  };
  const kubelets: KubeletToQuery[] = [];
  try {
    for (const target of await readHostTargets(services, requested)) {
      const host = await services.connectHost(target.address === LOCAL ? commandLimit(requested.connection) : target);
      hosts.push(host);
      const asNode = requested.addresses.length > 0;
      const kubelet = await findKubelet(host, path, asNode, catalogue, signal);
      if (chosen !== null && chosen !== kubelet.minor)
        throw usageError(
          `--kubernetes-version ${formatMinor(chosen)} differs from the version of ${nameOf(kubelet)}, which validates the file`,
          'Omit --kubernetes-version',
        );
      kubelets.push(kubelet);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    close,
    validate: async (validate, file) => {
      const problems: Problem[] = [];
      for (const kubelet of kubelets) problems.push(...(await validateAndQuery(kubelet, validate, file, { catalogue, signal })));
      return [...new Map(problems.map((problem) => [formatProblem(problem), problem])).values()];
    },
  };
}

async function validateAndQuery(
  kubelet: KubeletToQuery,
  validate: (asked: Asked) => Promise<TextVerdict>,
  file: string,
  options: { readonly catalogue: Catalogue; readonly signal: AbortSignal },
): Promise<readonly Problem[]> {
  const { minor, flags, running, cgroupVersion } = kubelet;
  const { problems, kubeletText } = await validate({
    chosen: minor,
    flags,
    ...(running === null ? {} : { running }),
    ...(cgroupVersion === null ? {} : { cgroupVersion }),
  });
  if (kubeletText === null) return problems;
  const accepts = problems.every(({ severity, code }) => severity === 'warning' || NO_REASON.has(code));
  const acceptance = await queryKubelet(kubelet, kubeletText, options);
  return [...problems, ...compareVerdicts(acceptance, { file, accepts }, nameOf(kubelet))];
}

/** Problems that kubeletadm reports as errors but the kubelet accepts. */
const NO_REASON: ReadonlySet<string> = new Set(['CONFIG_UNKNOWN_FIELD', 'CONFIG_DUPLICATE_FIELD', UNSAFE_DIRECTORY]);

/** The local host, as `--host` and as its transport name it. */
const LOCAL = 'localhost';

function nameOf({ version, host }: KubeletToQuery): string {
  return `kubelet ${version}${host.name === LOCAL ? '' : ` of ${host.name}`}`;
}
