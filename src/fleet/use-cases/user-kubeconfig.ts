import { AppError, type Problem, usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { Secret, type SensitiveText } from '../../base/text/secret.ts';
import { observe } from '../../host/access/observe.ts';
import { defaultRoute } from '../../host/facts/default-route.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { tokenKubeconfig } from '../../kube/kubeconfig-render.ts';
import { applyClusterDefaults, applyEndpointDefaults } from '../../kubeadm/config/defaults.ts';
import { mergeInitFlags } from '../../kubeadm/config/flags.ts';
import { controlPlaneServer } from '../../kubeadm/control-plane/model.ts';
import { pkiPath } from '../../kubeadm/pki/certificate-list.ts';
import { pkiNotCa, pkiUnreadable } from '../../kubeadm/pki/pki-problems.ts';
import { loadConfigFile, requireValid } from '../../kubeadm/use-cases/load-config-file.ts';
import { issueKubeconfig } from '../../kubeadm/workflows/certificates/issue-kubeconfig.ts';
import { formatName } from '../../x509/describe-certificate.ts';
import { certificateOrWhy } from '../../x509/read-certificate.ts';
import type { HostTarget } from '../host-target.ts';
import type { NodeCommandPorts } from '../ports.ts';

export interface UserKubeconfigRequest {
  readonly config: string | undefined;
  /** Name of the user, and CN of the client certificate. */
  readonly clientName: string;
  /** Groups of the user, O of the client certificate. */
  readonly organizations: readonly string[];
  /** Used in place of a client certificate; `stdin`: read from standard input; null: a certificate is issued. */
  readonly token: Secret | 'stdin' | null;
  readonly validMs: number;
}

/**
 * A kubeconfig for an additional user: with a client certificate that the CA of a control plane host signs, or
 * with a token. Writes nothing to the host.
 * @throws AppError: problems of the configuration, no token on standard input (exit code 2); PKI_* for a missing or unusable CA
 * @see kubeadm 1.36 kubeconfig user
 */
export async function userKubeconfig(
  services: NodeCommandPorts,
  target: HostTarget,
  request: UserKubeconfigRequest,
  reporter: Reporter,
): Promise<SensitiveText> {
  const config = mergeInitFlags(await loadConfigFile(services, request.config, ['InitConfiguration', 'ClusterConfiguration']), {});
  for (const { code, message } of requireValid(config)) reporter.report({ level: 'warning', code, message });
  const declared = config.init?.localAPIEndpoint ?? {};
  const cluster = applyClusterDefaults(config.cluster ?? {}, declared.bindPort);
  const token = request.token === 'stdin' ? await readToken(services) : request.token;
  const [crt, key] = [pkiPath(cluster.certificatesDir, 'ca', 'crt'), pkiPath(cluster.certificatesDir, 'ca', 'key')];
  const host = await services.connectHost(target, reporter);
  try {
    const facts = await observe(
      host,
      combineFacts({ files: fileFacts(token === null ? [crt, key] : [crt]), route: defaultRoute }),
      services.signal,
    );
    const refuse = (problem: Problem): never => {
      throw new AppError({ host: host.name, ...problem }, { exitCode: 3 });
    };
    const found = (path: string): string | null => facts.files.get(path)?.content ?? null;
    const ca = certificateOrWhy(found(crt) ?? '');
    if (typeof ca === 'string') return refuse(found(crt) === null ? missing(crt) : pkiUnreadable(crt, ca));
    if (!ca.isCa) return refuse(pkiNotCa(crt, formatName(ca.subject)));
    // With a control plane endpoint, the address of the host is not needed.
    const { controlPlaneEndpoint } = cluster;
    const localAPIEndpoint =
      controlPlaneEndpoint === undefined
        ? applyEndpointDefaults(declared, { defaultRoute: facts.route })
        : { advertiseAddress: '', bindPort: declared.bindPort ?? 6443 };
    const server = controlPlaneServer({ cluster, localAPIEndpoint });
    const common = { clusterName: cluster.clusterName, server, caPem: ca.pem, user: request.clientName };
    if (token !== null) return tokenKubeconfig({ ...common, token });
    const issued = await issueKubeconfig(
      { ...common, organizations: request.organizations, validMs: request.validMs },
      { cluster, ca, found, issuer: await services.certificateIssuer(), now: services.clock.now() },
    );
    return 'problem' in issued ? refuse(issued.problem) : issued.content;
  } finally {
    await host.close();
  }
}

async function readToken({ input }: NodeCommandPorts): Promise<Secret> {
  const token = (await input.readText('-')).trim();
  if (/^\S+$/.test(token)) return new Secret(token);
  throw usageError('--token -: standard input does not contain one token', 'Example: kubeletadm kubeconfig user --token - < token.txt');
}

function missing(crt: string): Problem {
  return {
    code: 'PKI_NO_CONTROL_PLANE',
    message: `${crt} does not exist: the CA of the cluster is required`,
    hint: 'Name a control plane with --host, or set certificatesDir in --config',
  };
}
