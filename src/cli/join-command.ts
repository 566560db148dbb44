import type { Command } from 'commander';
import { JOIN_PHASES } from '../kubeadm/workflows/phase-lists.ts';
import type { On, Run } from './command.ts';
import { addSections, HEADINGS, underHeading } from './help-layout.ts';
import { addApiServerOptions, addHostOptions, addKubeconfigOptions, addNodeOptions, addPlanOptions, collect } from './options.ts';
import { addConfirmOptions } from './writing-options.ts';

/** `join`, `join phase`. */
export function defineJoin(join: Command, on: On): void {
  const load = async (): Promise<Run> => (await import('./join.ts')).runJoin;
  const options = (command: Command): Command => addConfirmOptions(addHostOptions(addNodeOptions(addJoinOptions(addPlanOptions(command)))));
  addSections(on(options(join.argument('[address:port]', 'address of the API server')), load), { phases: JOIN_PHASES, examples: EXAMPLES });
  const phase = join
    .command('phase')
    .description('Run one phase of join')
    .argument('<name...>', 'name of a phase, followed by the address:port of the API server');
  addSections(
    on(options(phase), async () => (await import('./join.ts')).runJoinPhase),
    { phases: JOIN_PHASES },
  );
}

function addJoinOptions(command: Command): Command {
  underHeading(command, HEADINGS.discovery, (discovery) =>
    discovery
      .option('--token <token>', 'value for both --discovery-token and --tls-bootstrap-token')
      .option('--discovery-token <token>', 'token to validate the cluster information with')
      .option('--discovery-token-ca-cert-hash <type:value>', "pin of the cluster's CA, sha256:<hex> (repeatable)", collect)
      .option('--discovery-token-unsafe-skip-ca-verification', 'skip CA pinning: anyone who knows the token can impersonate the API server')
      .option('--discovery-file <file>', 'kubeconfig with the cluster information, a path or an https URL')
      .option('--tls-bootstrap-token <token>', 'token for the TLS bootstrap of the kubelet')
      .option('--ca-cert <file>', "the cluster's CA certificate, an alternative to a pin"),
  );
  addKubeconfigOptions(command, 'kubeconfig of an administrator, for labels and taints that a node cannot set itself');
  underHeading(command, HEADINGS.node, (node) =>
    node
      .option('--take-over', 'reuse the name of an existing Node that is not Ready')
      .option('--wait-ready [duration]', 'wait until the Node is Ready (default without a value: 5m)'),
  );
  underHeading(command, HEADINGS.controlPlane, (cluster) =>
    cluster
      .option('--control-plane', 'create a control plane on the node')
      .option('--certificate-key <key>', 'with --control-plane: key of the uploaded control plane certificates'),
  );
  return addApiServerOptions(command, 'with --control-plane: ');
}

const EXAMPLES = `  # as printed by token create --print-join-command, for hosts over SSH
  kubeletadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef \\
    --discovery-token-ca-cert-hash sha256:<hex> --host root@10.0.0.12
  kubeletadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef --ca-cert ca.crt --host root@10.0.0.12
  # with a kubeconfig that contains the CA of the cluster, from a file or a URL
  kubeletadm join --discovery-file cluster.conf --host node2 --host node3 --dry-run
  kubeletadm join --discovery-file https://config.example.com/cluster.conf \\
    --tls-bootstrap-token abcdef.0123456789abcdef
  kubeletadm join --config join.yaml --overlay node2-kubelet.yaml --host node2`;
