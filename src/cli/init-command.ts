import { type Command, Option } from 'commander';
import type { PhaseLists } from '../kubeadm/workflows/phase-help.ts';
import type { CommandOptions, On, Run } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import type { InitCommandRequest } from './init.ts';
import { nodeRequest } from './node-request.ts';
import {
  addAllowOptions,
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
  IMPACT_NOTES,
} from './options.ts';
import { definePhaseCommands } from './phase-commands.ts';
import { phaseName } from './phase-name.ts';
import { flagText, hostDirectory, hostsRequest, kubeadmFlags, kubeconfigRequest, kubeletRunRequest, planRequest } from './request-parts.ts';
import { addConfirmOptions, addReasonOption, writingRequest } from './writing-options.ts';

/** `init`, `init phase`. */
export function defineInit(init: Command, on: On, phases: PhaseLists): void {
  const run: Run<InitCommandRequest> = async (...args) => (await import('./init.ts')).runInit(...args);
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
  options(init, addRequestRate).addOption(new Option('--kubeconfig <file>', 'only of init phase').hideHelp());
  addSections(on(init, initRequest, run), {
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
    run,
  );
  definePhaseCommands(phase, phases.init, {
    options: {
      kubeconfig: () => new Option('--kubeconfig-dir <dir>', 'directory to write the kubeconfigs to (default: /etc/kubernetes)'),
      addon: () => new Option('--print-manifest', 'print the objects of the addon as YAML; change nothing'),
    },
    run: (command, words) => on(command, (_, given) => initRequest(words, given), run),
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
        'overwrite manually edited ConfigMaps (kubelet-config, kube-proxy, coredns) and the API server address in cluster-info',
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
  };
}

const KUBECONFIG =
  'kubeconfig of an administrator of the cluster that the phase changes (default: admin.conf of the host; KUBECONFIG is ignored)';

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
