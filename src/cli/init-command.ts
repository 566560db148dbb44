import { type Command, Option } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import type { KubeconfigFile } from '../fleet/use-cases/admin-kubeconfig.ts';
import type { InitRequest, OpenedInit } from '../fleet/use-cases/open-init.ts';
import { isSelectedBy } from '../host/run-settings.ts';
import { PHASES_WITH_KUBECONFIG } from '../kubeadm/config/kubeconfig-phases.ts';
import type { PhaseLists } from '../kubeadm/workflows/phase-lists.ts';
import { addAllowOptions, IMPACT_NOTES } from './allow-options.ts';
import type { CommandOptions, On } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';
import {
  addApiServerOptions,
  addClusterSettings,
  addHostOptions,
  addKubeconfigOptions,
  addNodeOptions,
  addPlanOptions,
  addRequestRate,
  addShowOrigin,
  addTokenOptions,
  collectList,
} from './options.ts';
import type { Services } from './output/services.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { addKubeconfigOut } from './output-options.ts';
import { definePhaseCommands, phaseName } from './phase-commands.ts';
import {
  hostDirectory,
  hostsRequest,
  kubeadmFlags,
  kubeconfigRequest,
  kubeletRunRequest,
  nodeRequest,
  planRequest,
} from './request-parts.ts';
import { addConfirmOptions, addReasonOption, writingRequest } from './writing-options.ts';

/** `init`, `init phase`. */
export function defineInit(init: Command, on: On, phases: PhaseLists): void {
  const options = (command: Command, addClusterAccess: (command: Command) => Command): Command =>
    addReasonOption(
      addConfirmOptions(
        addHostOptions(
          addInitOptions(addClusterAccess(addAllowOptions(addNodeOptions(addShowOrigin(addPlanOptions(command)))))),
          undefined,
          'target host, reached over SSH (default: the local host)',
        ),
      ),
    );
  options(init, addRequestRate);
  addKubeconfigOut(init);
  // Accepted only for an error that names cluster adopt.
  for (const flags of ['--kubeconfig <file>', '--context <name>'])
    init.addOption(new Option(flags, 'only of init phase').hideHelp().helpGroup(HEADINGS.cluster));
  addSections(on(init, initRequest, runInit), {
    notes: `${ADOPT_NOTES}\n\n${IMPACT_NOTES}`,
    phases: phases.init,
    examples: EXAMPLES,
  });
  const phase = init
    .command('phase')
    .description('Run one phase of init. Example: init phase upload-config kubelet runs the phase upload-config/kubelet')
    .argument('<name...>', 'name of a phase, e.g. upload-config kubelet');
  on(
    options(phase, (command) => addKubeconfigOptions(command, KUBECONFIG)),
    initRequest,
    runInit,
  );
  definePhaseCommands(phase, phases.init, {
    options: {
      kubeconfig: () => new Option('--kubeconfig-dir <dir>', 'directory to write the kubeconfigs to (default: /etc/kubernetes)'),
      addon: () => new Option('--print-manifest', 'print the objects of the addon as YAML; change nothing'),
    },
    run: (command, words) => on(command, (_, given) => initRequest(words, given), runInit),
  });
}

/** The cluster that init creates, for init and config render. */
export function addInitOptions(command: Command): Command {
  addApiServerOptions(addClusterSettings(command));
  addOptionGroup(command, HEADINGS.controlPlane, (cluster) =>
    cluster
      .option('--apiserver-cert-extra-sans <names>', 'additional SANs of the API server certificate (repeatable)', collectList)
      .option(
        '--upload-certs',
        'upload the certificates shared by control planes to the Secret kubeadm-certs, which expires after two hours',
      )
      .option('--certificate-key <key>', 'key to encrypt the uploaded certificates with, 64 hexadecimal digits (default: a generated key)')
      .option('--skip-certificate-key-print', 'omit the certificate key from the printed join command')
      .option(
        '--force-upload',
        'overwrite the ConfigMaps kubelet-config, kube-proxy and coredns if they were uploaded from --config or edited by hand, and the API server address in cluster-info',
      ),
  );
  return addTokenOptions(command);
}

function initRequest(args: readonly string[], options: CommandOptions): InitCommandRequest {
  return {
    config: flagText(options, 'config'),
    flags: kubeadmFlags(options),
    cluster: kubeconfigRequest(options),
    hosts: hostsRequest(options),
    node: nodeRequest(options),
    plan: planRequest(options),
    run: kubeletRunRequest(options, phaseName(args)),
    writing: writingRequest(options, 'init'),
    uploadCerts: options.uploadCerts === true,
    skipCertificateKeyPrint: options.skipCertificateKeyPrint === true,
    skipTokenPrint: options.skipTokenPrint === true,
    forceUpload: options.forceUpload === true,
    kubeconfigDir: hostDirectory(options, 'kubeconfigDir', '--kubeconfig-dir'),
    printsManifest: options.printManifest === true,
    kubeconfigFile: kubeconfigFile(options),
  };
}

/** The file of `--kubeconfig-out`; null: none. */
function kubeconfigFile(options: CommandOptions): KubeconfigFile | null {
  const path = flagText(options, 'kubeconfigOut');
  if (path === undefined) return null;
  if (flagText(options, 'rootfs') !== undefined)
    throw usageError('--kubeconfig-out cannot be combined with --rootfs, which starts no control plane', 'Omit one of the two');
  return { path, force: false };
}

const KUBECONFIG = `only for ${PHASES_WITH_KUBECONFIG.join(', ')}: kubeconfig of an administrator of the cluster that the phase changes (default: admin.conf of the host; KUBECONFIG is ignored)`;

const ADOPT_NOTES =
  'init creates a new cluster. To join hosts to a cluster that another program created, run cluster adopt, then join for each host.';

const EXAMPLES = `  # a control plane on a new host, prepared for additional control planes
  kubeletadm init --host root@10.0.0.10 --control-plane-endpoint api.example:6443 --upload-certs
  # show the planned changes of the local host, and the source of each field
  kubeletadm init --dry-run --show-origin
  # a host over SSH, with its own address and a lower pod limit
  kubeletadm init --host root@10.0.0.11 --node-ip 10.0.0.11 --set maxPods=50
  # files only, written to a directory (for an image)
  kubeletadm init --config init.yaml --rootfs ./image
  # one phase
  kubeletadm init phase upload-config kubelet --kubeconfig admin.conf`;

interface InitCommandRequest extends InitRequest {
  readonly plan: PlanRequest;
  /** `--print-manifest` of the addons. */
  readonly printsManifest: boolean;
  /** Receives the kubeconfig of the administrator; null: none. */
  readonly kubeconfigFile: KubeconfigFile | null;
}

/** `init` and `init phase NAME...`. */
async function runInit(services: Services, request: InitCommandRequest): Promise<ExitCode> {
  const [{ openInit }, { runOnHosts }] = await Promise.all([import('../fleet/use-cases/open-init.ts'), import('./run-on-hosts.ts')]);
  if (request.printsManifest) return printManifests(services, request);
  const { kubeconfigFile: file } = request;
  return runOnHosts(services, request, {
    title: 'init',
    open: async (scope) => {
      const command = await openInit(services, request, scope);
      const [target = {}] = command.targets;
      if (file !== null) await (await import('../fleet/use-cases/admin-kubeconfig.ts')).requireKubeconfigFile(services, target, file);
      return command;
    },
    afterwards: (command) => showCluster(services, request, command),
  });
}

/** Prints the uploaded key, the first steps and the join commands; fetches the kubeconfig. */
async function showCluster(
  services: Services,
  request: InitCommandRequest,
  { joinCommands, certificateKey, targets: [target = {}] }: OpenedInit,
): Promise<void> {
  const [{ initDone, uploadedCertificates }, { firstSteps, printJoinCommands, remoteUse, visitNewCluster }] = await Promise.all([
    import('./kubeadm-output.ts'),
    import('./new-cluster.ts'),
  ]);
  const { plan, kubeconfigFile: file } = request;
  const asKubeadm = services.programName === 'kubeadm';
  const key = certificateKey();
  const shownKey = request.skipCertificateKeyPrint ? null : (key?.reveal() ?? null);
  const isText = plan.format === 'text';
  // The last line is the key, under both names: scripts read it with tail -1.
  if (key !== null && isText && (asKubeadm || joinCommands.size === 0)) services.output.stdout(uploadedCertificates(shownKey));
  const isNew = isText && request.cluster.kubeconfig === undefined && joinCommands.size > 0;
  const shows = isNew && !asKubeadm;
  const seen = shows || file !== null ? await visitNewCluster(services, target, file) : { nodes: '', failure: null };
  const remote = await remoteUse(services, request.hosts);
  if (isNew && asKubeadm) services.output.stdout(initDone(joinCommands, request.uploadCerts));
  else if (joinCommands.size > 0) {
    const kubeconfig = file === null || seen.failure !== null ? null : services.absolutePath(file.path);
    if (shows) services.output.stdout(firstSteps({ nodes: seen.nodes, remote, kubeconfig }));
    printJoinCommands(services, joinCommands, plan, shows ? remote : null);
  }
  if (seen.failure !== null) throw seen.failure;
}

/** `init phase addon ... --print-manifest`. */
async function printManifests(services: Services, { run: { onlyPhase = '' }, config, flags }: InitCommandRequest): Promise<ExitCode> {
  const [{ ADDONS, addonManifests }, { encodeYaml }] = await Promise.all([
    import('../kubeadm/use-cases/addon-manifests.ts'),
    import('../codec/yaml-encode.ts'),
  ]);
  const addons = ADDONS.filter((addon) => isSelectedBy(`addon/${addon}`, onlyPhase));
  const { objects, warnings } = await addonManifests(services, addons, { config, flags });
  const reporter = services.reporter({ verbosity: 0, format: 'text' });
  for (const { code, message } of warnings) reporter.report({ level: 'warning', code, message });
  services.output.document(objects.map((object) => `---\n${encodeYaml(object)}`).join(''));
  return 0;
}
