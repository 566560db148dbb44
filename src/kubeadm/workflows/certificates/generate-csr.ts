import { isAppError, type Problem, withHostInErrors } from '../../../base/errors.ts';
import { Secret, SensitiveText } from '../../../base/text/secret.ts';
import { observe } from '../../../host/access/observe.ts';
import { defaultRoute } from '../../../host/facts/default-route.ts';
import { combineFacts } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import { operatingSystem } from '../../../host/facts/operating-system.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { DesiredFile } from '../../../host/plan/diff-file.ts';
import type { Workflow } from '../../../host/run-workflow.ts';
import { parseKubeconfig } from '../../../kube/kubeconfig.ts';
import { clientKeyOf, keyKubeconfig } from '../../../kube/kubeconfig-render.ts';
import type { CertificateIssuer, CertificateParameters, CertificateSpec } from '../../../x509/certificate-issuer.ts';
import { readPrivateKey } from '../../../x509/private-key.ts';
import { applyClusterDefaults, applyEndpointDefaults, applyNodeDefaults } from '../../config/defaults.ts';
import type { ClusterConfiguration, InitConfiguration } from '../../config/model.ts';
import { controlPlaneServer, localServer } from '../../control-plane/model.ts';
import { type WriteFilesInput, writeFilesPhase } from '../../phases/write-files.ts';
import type { PkiConfiguration } from '../../pki/alt-names.ts';
import { CERTIFICATES, certificateParametersOf, pkiPath, specOf } from '../../pki/certificate-list.ts';
import { clientSpecOf, KUBECONFIGS, type KubeconfigDefinition } from '../../pki/kubeconfig-list.ts';
import { pkiKubeconfigUnusable, pkiNoKey } from '../../pki/pki-problems.ts';

interface GenerateCsrOptions {
  readonly issuer: CertificateIssuer;
  readonly init: InitConfiguration;
  readonly cluster: ClusterConfiguration;
  readonly kubernetesDir: string;
}

const EXISTING = 'keys and CSRs exist';

/**
 * Generates keys and CSRs for an external CA: `NAME.csr` next to `NAME.key`, and kubeconfig files without certificates.
 * Existing keys are kept.
 * @see kubeadm 1.36 certs generate-csr, which fails when a file exists
 */
export const generateCsrWorkflow: Workflow<GenerateCsrOptions, GenerateCsrInput> = {
  name: 'certs generate-csr',
  phases: [
    writeFilesPhase('certs', 'Generate keys and CSRs', EXISTING).select((input: GenerateCsrInput) => input.certificates),
    writeFilesPhase('kubeconfig', 'Generate kubeconfig files and CSRs for their certificates', EXISTING).select(
      (input) => input.kubeconfigs,
    ),
  ],
  prepare,
};

type GenerateCsrInput = Awaited<ReturnType<typeof prepare>>['input'];

async function prepare(context: PhaseContext, options: GenerateCsrOptions) {
  const node = await resolvePkiConfiguration(context, options);
  const { certificatesDir } = node.cluster;
  const parameters = certificateParametersOf(node.cluster, context.clock.now());
  const keys = CERTIFICATES.filter(({ ca }) => ca !== null).map((definition) => {
    const at = (kind: 'key' | 'csr'): string => pkiPath(certificatesDir, definition.baseName, kind);
    return { definition, path: at('key'), csr: at('csr') };
  });
  const confs = KUBECONFIGS.map((definition) => {
    const path = `${options.kubernetesDir}/${definition.file}`;
    return { definition, path, csr: `${path}.csr` };
  });
  const asked = [...keys, ...confs].flatMap(({ path, csr }) => [path, csr]);
  const facts = await observe(context.host, fileFacts(asked), context.signal);
  const work: Work = { node, parameters, issuer: options.issuer, found: (path) => facts.get(path)?.content ?? null, problems: [] };
  const certificates = await Promise.all(
    keys.map(({ definition, ...paths }) => certificateFiles(work, paths, specOf(definition, node, parameters))),
  );
  const kubeconfigs = await Promise.all(confs.map(({ definition, ...paths }) => kubeconfigFiles(work, paths, definition)));
  const input = (files: readonly (readonly DesiredFile[])[]): WriteFilesInput => ({ files: files.flat(), directories: [], mayChown: true });
  return {
    input: { certificates: input(certificates), kubeconfigs: input(kubeconfigs) },
    warnings: [],
    refusals: work.problems.map((problem) => ({ host: context.host.name, ...problem })),
  };
}

async function resolvePkiConfiguration({ host, signal }: PhaseContext, { init, cluster }: GenerateCsrOptions): Promise<PkiConfiguration> {
  const facts = await observe(host, combineFacts({ system: operatingSystem, route: defaultRoute }), signal);
  return withHostInErrors(host.name, () => {
    const localAPIEndpoint = applyEndpointDefaults(init.localAPIEndpoint ?? {}, { defaultRoute: facts.route });
    const defaults = { hostname: facts.system.hostname ?? '', criSockets: ['unix:///none'] };
    const { name } = applyNodeDefaults(init.nodeRegistration ?? {}, defaults);
    return { cluster: applyClusterDefaults(cluster, localAPIEndpoint.bindPort), nodeName: name, localAPIEndpoint };
  });
}

interface Work {
  readonly node: PkiConfiguration;
  readonly parameters: CertificateParameters;
  readonly issuer: CertificateIssuer;
  readonly found: (path: string) => string | null;
  readonly problems: Problem[];
}

/** The file with the key, and that of its CSR. */
interface CsrPaths {
  readonly path: string;
  readonly csr: string;
}

const FILE = { owner: 'root:root', mode: 0o600, onlyIfAbsent: true } as const;

async function certificateFiles(
  { found, problems, issuer, parameters }: Work,
  { path, csr }: CsrPaths,
  spec: CertificateSpec,
): Promise<readonly DesiredFile[]> {
  const keyText = found(path);
  if (keyText !== null && found(csr) !== null) return [];
  const keyPem = keyText === null ? await issuer.generateKey(parameters.keyAlgorithm) : new Secret(keyText);
  if (readPrivateKey(keyPem) === null) {
    problems.push(pkiNoKey(path, 'private key'));
    return [];
  }
  const request: DesiredFile = { ...FILE, path: csr, content: await issuer.request(spec, keyPem), onlyIfAbsent: keyText !== null };
  return [...(keyText === null ? [{ ...FILE, path, content: new SensitiveText([keyPem]), summary: {} }] : []), request];
}

async function kubeconfigFiles(
  { node, parameters, found, problems, issuer }: Work,
  { path, csr }: CsrPaths,
  definition: KubeconfigDefinition,
): Promise<readonly DesiredFile[]> {
  const text = found(path);
  if (text !== null && found(csr) !== null) return [];
  const existing = text === null ? null : keyIn(text, path);
  if (text !== null && existing === null) {
    problems.push(pkiKubeconfigUnusable(path, 'it contains no client key to create a CSR with'));
    return [];
  }
  const keyPem = existing ?? (await issuer.generateKey(parameters.keyAlgorithm));
  const spec = clientSpecOf(definition, node, { ...parameters, caNotBefore: parameters.now });
  const request: DesiredFile = { ...FILE, path: csr, content: await issuer.request(spec, keyPem), onlyIfAbsent: existing !== null };
  if (existing !== null) return [request];
  const { clusterName } = node.cluster;
  const [server, user] = [serverBefore(definition, node), spec.commonName];
  const kubeconfig = { cluster: clusterName, server, user, currentContext: `${user}@${clusterName}` };
  return [{ ...FILE, path, content: keyKubeconfig({ clusterName, server, user, keyPem }), summary: { kubeconfig } }, request];
}

/** Unlike in init, kubelet.conf gets the control plane endpoint. */
function serverBefore({ name, server }: KubeconfigDefinition, node: PkiConfiguration): string {
  return server === 'local' && name !== 'kubelet' ? localServer(node.localAPIEndpoint) : controlPlaneServer(node);
}

/** The client key of a kubeconfig; null when the kubeconfig has no readable key. */
function keyIn(text: string, path: string): Secret | null {
  try {
    const key = clientKeyOf(parseKubeconfig(text, path).users[0]?.keyData);
    return key === null || readPrivateKey(key) === null ? null : key;
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}
