import type { ExitCode } from '../base/errors.ts';
import { type InitRequest, type JoinCommands, openInit } from '../fleet/use-cases/open-init.ts';
import { isSelectedBy } from '../host/run-workflow.ts';
import { initDone, uploadedCertificates } from './kubeadm-output.ts';
import type { Services } from './output/services.ts';
import type { OutputRequest } from './output/show-document.ts';
import type { PlanRequest } from './output/show-plan.ts';
import { runOnHosts } from './run-on-hosts.ts';

export interface InitCommandRequest extends InitRequest {
  readonly plan: PlanRequest;
  /** `--print-manifest` of the addons. */
  readonly printsManifest: boolean;
}

/** `init` and `init phase NAME...`. */
export function runInit(services: Services, request: InitCommandRequest): Promise<ExitCode> {
  const { plan } = request;
  if (request.printsManifest) return printManifests(services, request);
  const asKubeadm = services.programName === 'kubeadm';
  return runOnHosts(services, request, {
    title: 'init',
    open: (scope) => openInit(services, request, scope),
    afterwards: ({ joinCommands, certificateKey }) => {
      const key = certificateKey();
      const shownKey = request.skipCertificateKeyPrint ? null : (key?.reveal() ?? null);
      const isText = plan.format === 'text';
      // The last line is the key, under both names: scripts read it with tail -1.
      if (key !== null && isText && (asKubeadm || joinCommands.size === 0)) services.output.stdout(uploadedCertificates(shownKey));
      if (joinCommands.size === 0) return;
      const isNew = isText && request.cluster.kubeconfig === undefined;
      if (isNew && asKubeadm) return services.output.stdout(initDone(joinCommands, request.uploadCerts));
      if (isNew) services.output.stdout(firstSteps(request.hosts.addresses[0]));
      printJoinCommands(services, joinCommands, plan);
    },
  });
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

/** Prints the commands on standard output, except for documents, which must stay parseable. */
export function printJoinCommands({ output }: Services, commands: JoinCommands, { format }: OutputRequest): void {
  if (format !== 'text') {
    output.stderr('To print a join command, run: kubeletadm token create --print-join-command\n');
    return;
  }
  const lines = (kind: 'worker' | 'control-plane'): readonly string[] =>
    [...commands].flatMap(([command, joins]) => (joins === kind ? [`  ${command.trimEnd()}\n`] : []));
  const [workers, controlPlanes] = [lines('worker'), lines('control-plane')];
  if (controlPlanes.length > 0) output.stdout(`\nJoin other control planes with:\n\n${controlPlanes.join('')}`);
  const others = controlPlanes.length > 0 ? 'workers' : 'other nodes';
  if (workers.length > 0) output.stdout(`\nJoin ${others} with:\n\n${workers.join('')}\n`);
}

/**
 * How to use a new cluster, printed at the end of `init` as kubeadm does: the kubeconfig, and the pod network without
 * which no Node is Ready.
 * @param host the address of the control plane; undefined: the local host
 */
export function firstSteps(host: string | undefined): string {
  return `
The control plane is running. To use the cluster as a regular user, run${host === undefined ? '' : ` on ${host}`}:

  mkdir -p $HOME/.kube
  sudo cp -i /etc/kubernetes/admin.conf $HOME/.kube/config
  sudo chown $(id -u):$(id -g) $HOME/.kube/config

or, as root:

  export KUBECONFIG=/etc/kubernetes/admin.conf

Then install a pod network (https://kubernetes.io/docs/concepts/cluster-administration/addons/):

  kubectl apply -f PODNETWORK.yaml
`;
}
