import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import type { AdoptRequest } from '../fleet/use-cases/open-adopt.ts';
import type { CommandOptions, CommandServices, On } from './command.ts';
import { addOptionGroup, addSections, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';
import { addClusterSettings, addDryRunOptions, addKubeconfigOptions, addTokenOptions } from './options.ts';
import type { WithPlan } from './output/show-plan.ts';
import { kubeadmFlags, kubeconfigRequest, planRequest, runRequest } from './request-parts.ts';

/** `cluster adopt`. */
export function defineCluster(cluster: Command, on: On): void {
  const adopt = cluster
    .command('adopt')
    .description('Prepare an existing cluster for nodes that join with kubeletadm or kubeadm; change no host')
    .option('--config <file>', "kubeadm configuration documents; '-' for standard input")
    .option('--print-join-command', 'print the command that joins a node to the cluster');
  addKubeconfigOptions(adopt, 'kubeconfig of an administrator of the cluster (required; KUBECONFIG is ignored)');
  addOptionGroup(addClusterSettings(adopt, VERSION), HEADINGS.cluster, (group) =>
    group.option(
      '--force-upload',
      'overwrite a kubelet-config that was uploaded from --config or edited by hand, and the API server address in cluster-info',
    ),
  );
  addTokenOptions(addDryRunOptions(adopt), TOKEN);
  on(adopt, adoptRequest, runAdopt);
  addSections(adopt, {
    notes: NOTES,
    examples: `  kubeletadm cluster adopt --kubeconfig admin.conf --dry-run
  kubeletadm cluster adopt --kubeconfig admin.conf --config cluster.yaml --print-join-command
  # then, for each host, the printed command with --host added
  kubeletadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef \\
    --discovery-token-ca-cert-hash sha256:<hex> --host root@10.0.0.12`,
  });
}

const VERSION = 'control plane version, assumed if the API server is unreachable; otherwise the version of the API server is used';
const TOKEN = 'none; with --print-join-command, an existing usable token, otherwise a new one';

const NOTES =
  'The command creates the objects in the cluster that join, upgrade node and dynamic need: the ConfigMaps kubeadm-config and kubelet-config, cluster-info, and the RBAC rules for joining nodes. A kubelet-config that was uploaded from --config or edited by hand is kept unless --force-upload is given. The control plane settings are stored in kubeadm-config, and used for kubelet-config, cluster-info and the join command; the control plane itself is not changed. A token is created only with --token, with bootstrapTokens in the file of --config, or with --print-join-command if no usable token exists.';

function adoptRequest(_: readonly string[], options: CommandOptions): WithPlan<AdoptRequest> {
  const cluster = kubeconfigRequest(options);
  if (cluster.kubeconfig === undefined)
    throw usageError('cluster adopt requires --kubeconfig', 'Pass the kubeconfig of an administrator of the cluster');
  return {
    config: flagText(options, 'config'),
    flags: kubeadmFlags(options),
    cluster,
    run: runRequest(options),
    plan: planRequest(options),
    forceUpload: options.forceUpload === true,
    printsJoinCommand: options.printJoinCommand === true,
    skipTokenPrint: options.skipTokenPrint === true,
  };
}

async function runAdopt(services: CommandServices, request: WithPlan<AdoptRequest>) {
  const [{ openAdopt }, { printJoinCommands }, { runOnHosts }] = await Promise.all([
    import('../fleet/use-cases/open-adopt.ts'),
    import('./new-cluster.ts'),
    import('./run-on-hosts.ts'),
  ]);
  return runOnHosts(services, request, {
    title: 'cluster adopt',
    open: (scope) => openAdopt(services, request, scope),
    afterwards: ({ joinCommands }) => {
      if (joinCommands.size > 0) printJoinCommands(services, joinCommands, request.plan);
    },
  });
}
