import type { Problem } from '../../base/errors.ts';
import type { Templates } from '../../codec/render-template.ts';
import type { AgentProgramInput } from '../../dynamic/phases/agent-program.ts';
import { oldProgramsPhase, programPhase } from '../../dynamic/phases/agent-program.ts';
import { type InstalledProgram, prepareProgram } from '../../dynamic/workflows/prepare-program.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts, defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { operatingSystem } from '../../host/facts/operating-system.ts';
import { type ClusterContext, withCluster } from '../../host/phase.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import type { Prepared, Workflow } from '../../host/run-workflow.ts';
import { applyClusterDefaults, type DefaultedCluster } from '../../kubeadm/config/defaults.ts';
import {
  CONTROLLER_CONF,
  CONTROLLER_CONF_NAME,
  CONTROLLER_DIRECTORY,
  CONTROLLER_UNIT,
  controllerUser,
  renderControllerUnit,
} from '../../kubeadm/control-plane/controller-unit.ts';
import { localServer } from '../../kubeadm/control-plane/model.ts';
import { manifestPath } from '../../kubeadm/control-plane/paths.ts';
import { type RunControllerInput, runController } from '../../kubeadm/phases/run-controller.ts';
import { type WriteFilesInput, writeFilesPhase } from '../../kubeadm/phases/write-files.ts';
import { pkiPath } from '../../kubeadm/pki/certificate-list.ts';
import { pkiUnreadable } from '../../kubeadm/pki/pki-problems.ts';
import { clientCertificateOf, validateKubeconfig } from '../../kubeadm/pki/validate-kubeconfig.ts';
import { apiEndpointOf } from '../../kubeadm/upgrade/static-pod-state.ts';
import { issueKubeconfig } from '../../kubeadm/workflows/certificates/issue-kubeconfig.ts';
import { readClusterConfiguration } from '../../kubeadm/workflows/node/cluster-baseline.ts';
import { challengeHost, identifyBy, type NodeTrust } from '../../kubeadm/workflows/node/identify-node.ts';
import { isAtHome } from '../../kubelet/node-agent/agent-units.ts';
import type { CertificateIssuer } from '../../x509/certificate-issuer.ts';
import { describeCertificate } from '../../x509/describe-certificate.ts';
import { certificateOrWhy } from '../../x509/read-certificate.ts';
import { CONTROLLER_DEPLOYMENT } from '../install/controller-objects.ts';
import { grantControllerRights } from '../phases/controller-on-host.ts';

export interface InstallOnHostOptions {
  readonly templates: Templates;
  readonly program: Omit<InstalledProgram, 'directory'>;
  readonly issuer: CertificateIssuer;
  /** Named by the operator; null: the host must prove its Node. */
  readonly nodeName: string | null;
  readonly trust: NodeTrust;
}

/** The inputs of the phases; absent: the host is refused. */
interface InstallInput {
  readonly program?: AgentProgramInput;
  readonly rights?: { readonly nodeName: string };
  readonly kubeconfig?: WriteFilesInput;
  readonly run?: RunControllerInput;
}

const NO_FILES: WriteFilesInput = { files: [], directories: [], mayChown: true };

const controllerProgram = programPhase('controller-program', 'Install the program of the controller');
const controllerKubeconfig = writeFilesPhase(
  'controller-kubeconfig',
  `Generate the kubeconfig of the controller (${CONTROLLER_CONF_NAME})`,
  'the kubeconfig is valid',
);
const startController = runController('controller-start', 'Start the controller, and verify that it reaches the API server');
const oldPrograms = oldProgramsPhase('controller-old-programs', 'Remove unused programs of the controller');

/** Installs the controller of rollouts on a control plane, as a unit of systemd. */
export const installOnHostWorkflow: Workflow<InstallOnHostOptions, InstallInput> = {
  name: 'controller install',
  phases: [
    controllerProgram.select((input) => input.program ?? null),
    grantControllerRights.select((input) => input.rights ?? null),
    controllerKubeconfig.select((input) => input.kubeconfig ?? NO_FILES),
    startController.select((input) => input.run ?? { unit: null, isRenewed: false }),
    oldPrograms.select(({ program }) => (program === undefined ? null : { directory: CONTROLLER_DIRECTORY, keep: program.path })),
  ],
  prepare: withCluster(prepareInstall),
};

const MANIFEST = manifestPath('kube-apiserver');

/** Takes the place of the key, without which a kubeconfig is not valid. */
const NO_KEY = Buffer.from('-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n').toString('base64');

const FACTS = combineFacts({
  os: operatingSystem,
  /** Its version, or why it is not known, as a clause about systemd. */
  systemd: defineFact(
    {
      running: { kind: 'list', path: '/run/systemd/system', lasting: true },
      version: { kind: 'command', argv: ['systemctl', '--version'] },
    },
    ({ running, version }) => {
      if (running === null) return 'does not run on the host';
      const [, number] = /^systemd (\d+)/.exec(version.stdout) ?? [];
      return number === undefined ? 'of the host does not report its version' : Number(number);
    },
  ),
  files: fileFacts([MANIFEST]),
  kubeconfig: fileFacts([CONTROLLER_CONF], { content: false }),
  /** Without its private key. */
  certificate: defineFact(
    { text: { kind: 'command', argv: ['sed', `s|client-key-data: .*|client-key-data: ${NO_KEY}|`, CONTROLLER_CONF] } },
    ({ text }) => (text.exitCode === 0 ? text.stdout : null),
  ),
});

async function prepareInstall(context: ClusterContext, options: InstallOnHostOptions): Promise<Prepared<InstallInput>> {
  const { host, cluster, signal } = context;
  const { trust, nodeName: named, program, templates } = options;
  const { challenge, fact } = await challengeHost({ trust });
  const { facts, evidence } = await observe(host, combineFacts({ facts: FACTS, evidence: fact }), signal);
  const identified = await identifyBy(context, { challenge, evidence }, { trust, named });
  const endpoint = apiEndpointOf(facts.files.get(MANIFEST)?.content ?? '');
  const refusals: Problem[] = [...identified.refusals];
  const refuse = (code: string, message: string, hint: string): void => void refusals.push({ host: host.name, code, message, hint });
  refuseHost(facts, endpoint, refuse);
  if ((await cluster.get(CONTROLLER_DEPLOYMENT)) !== null)
    refuse(
      'CONTROLLER_INSTALLED',
      `the controller is already installed in the cluster, as Deployment ${CONTROLLER_DEPLOYMENT.namespace}/${CONTROLLER_DEPLOYMENT.name}`,
      'Remove it first: kubeletadm controller uninstall',
    );
  const installed = await prepareProgram(
    context,
    { program: { ...program, directory: CONTROLLER_DIRECTORY }, machine: facts.os.machine, subject: 'the controller' },
    refuse,
  );
  const hidden = installed?.command.find(isAtHome);
  if (hidden !== undefined)
    refuse(
      'NODE_JS_MISSING',
      `${hidden} is below a home directory, which the user of the controller cannot read`,
      'Install Node.js for all users, or pass the path of another one with --node-js',
    );
  const { model, warnings } = await readClusterConfiguration(cluster);
  const node = identified.claim;
  const prepared = { warnings, refusals, node };
  if (installed === null || endpoint === null || node === null) return { ...prepared, input: {} };
  const { nodeName } = node;
  const desired = { cluster: applyClusterDefaults(model ?? {}), server: localServer(endpoint), user: controllerUser(nodeName) };
  const kubeconfig = await prepareKubeconfig(context, { ...desired, facts, issuer: options.issuer });
  if ('problem' in kubeconfig) return { ...prepared, input: {}, refusals: [...refusals, { host: host.name, ...kubeconfig.problem }] };
  const unit = { path: CONTROLLER_UNIT, content: renderControllerUnit(templates, installed.command), mode: 0o644, owner: 'root:root' };
  return {
    ...prepared,
    input: {
      program: installed,
      rights: { nodeName },
      kubeconfig: { ...NO_FILES, files: kubeconfig.files },
      run: { unit, isRenewed: kubeconfig.files.length > 0 },
    },
  };
}

/** The first version of systemd with LoadCredential=. */
const OLDEST_SYSTEMD = 247;

function refuseHost(
  { os, systemd }: ReturnType<typeof FACTS.parse>,
  endpoint: ReturnType<typeof apiEndpointOf>,
  refuse: (code: string, message: string, hint: string) => void,
): void {
  if (os.uid !== null && os.uid !== 0)
    refuse('IsPrivilegedUser', 'the user on the host is not root', 'Connect as root, or use privilege escalation (sudo)');
  if (typeof systemd === 'string' || systemd < OLDEST_SYSTEMD)
    refuse(
      'SYSTEMD_MISSING',
      `the controller needs systemd ${OLDEST_SYSTEMD} or later (LoadCredential=), but systemd ${typeof systemd === 'string' ? systemd : `of the host is ${systemd}`}`,
      'Name another control plane, or install the controller in the cluster with --image',
    );
  if (endpoint === null)
    refuse(
      'CONTROL_PLANE_MISSING',
      `the host is not a control plane: ${MANIFEST} does not exist or does not set the flag --advertise-address`,
      'Name a control plane with --host',
    );
}

interface DesiredKubeconfig {
  readonly cluster: DefaultedCluster;
  readonly server: string;
  readonly user: string;
}

/**
 * Issues the kubeconfig, unless the existing one is valid. Only then is the key of the CA read.
 * @returns its file, or none; or the problem of the CA
 */
async function prepareKubeconfig(
  context: ClusterContext,
  { facts, issuer, ...desired }: DesiredKubeconfig & { readonly facts: ReturnType<typeof FACTS.parse>; readonly issuer: CertificateIssuer },
): Promise<{ readonly files: readonly DesiredFile[] } | { readonly problem: Problem }> {
  const { host, signal } = context;
  const { cluster, server, user } = desired;
  const now = context.clock.now();
  const [crt, key] = [pkiPath(cluster.certificatesDir, 'ca', 'crt'), pkiPath(cluster.certificatesDir, 'ca', 'key')];
  const ca = certificateOrWhy((await observe(host, fileFacts([crt]), signal)).get(crt)?.content ?? '');
  if (typeof ca === 'string') return { problem: pkiUnreadable(crt, ca) };
  const file = facts.kubeconfig.get(CONTROLLER_CONF) ?? null;
  if (facts.certificate !== null && file !== null && (file.mode & 0o077) === 0 && file.owner === 'root:root') {
    const existing = {
      definition: { name: CONTROLLER_CONF_NAME, file: CONTROLLER_CONF_NAME },
      path: CONTROLLER_CONF,
      text: facts.certificate,
    };
    const { problems, warnings } = validateKubeconfig({ ...existing, expected: desired, cas: [ca], caPath: crt, now, found: () => null });
    const certificate = clientCertificateOf(facts.certificate, CONTROLLER_CONF);
    const isOwn = typeof certificate !== 'string' && certificate.subject.some(({ type, value }) => type === 'CN' && value === user);
    if (problems.length + warnings.length === 0 && isOwn) return { files: [] };
  }
  const keys = await observe(host, fileFacts([key]), signal);
  const { clusterName } = cluster;
  const request = { clusterName, server, user, organizations: [] };
  const issued = await issueKubeconfig(request, { cluster, ca, found: (path) => keys.get(path)?.content ?? null, issuer, now });
  if ('problem' in issued) return issued;
  const summary = {
    kubeconfig: { cluster: clusterName, server, user, currentContext: `${user}@${clusterName}` },
    certificate: describeCertificate(issued.certificatePem),
  };
  return { files: [{ path: CONTROLLER_CONF, content: issued.content, mode: 0o600, owner: 'root:root', whyOther: 'not valid', summary }] };
}
