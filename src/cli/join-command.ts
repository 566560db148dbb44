import type { Command } from 'commander';
import { JOIN_PHASES } from '../kubeadm/workflows/phase-lists.ts';
import type { On, Run } from './command.ts';
import { addHostOptions, addNodeOptions, addPlanOptions, collect } from './options.ts';
import { phaseLines } from './phase-lines.ts';
import { addConfirmOptions } from './writing-options.ts';

/** `join`, `join phase`. */
export function defineJoin(join: Command, on: On): void {
  const load = async (): Promise<Run> => (await import('./join.ts')).runJoin;
  const options = (command: Command): Command => addConfirmOptions(addJoinOptions(addHostOptions(addNodeOptions(addPlanOptions(command)))));
  on(options(join.argument('[address:port]', 'the API server')), load);
  join.addHelpText('after', () => `\nPhases:\n${phaseLines(JOIN_PHASES)}\n\n${JOIN_EXAMPLES}`);
  const phase = options(
    join.command('phase').description('Run one phase of join').argument('<name...>', 'a phase; then the address:port of the API server'),
  );
  on(phase, async () => (await import('./join.ts')).runJoinPhase).addHelpText('after', () => `\nPhases:\n${phaseLines(JOIN_PHASES)}`);
}

function addJoinOptions(command: Command): Command {
  return command
    .option('--token <token>', 'both --discovery-token and --tls-bootstrap-token')
    .option('--discovery-token <token>', 'token to find the cluster with')
    .option('--discovery-token-ca-cert-hash <type:value>', "pin of the cluster's CA, sha256:<hex> (repeatable)", collect)
    .option('--discovery-token-unsafe-skip-ca-verification', 'without a pin: who knows the token may pass for the API server')
    .option('--discovery-file <file>', 'kubeconfig to find the cluster with, a path or an https URL')
    .option('--tls-bootstrap-token <token>', 'token the kubelet bootstraps itself with')
    .option('--ca-cert <file>', "the cluster's CA certificate itself, in place of a pin")
    .option('--take-over', 'take the name of a Node that is there and not Ready')
    .option('--wait-ready [duration]', 'wait until the Node is Ready (default: 5m)')
    .option('--kubeconfig <file>', 'credentials of an administrator, for labels and taints that a node may not give itself')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--control-plane', 'make the node a control plane')
    .option('--certificate-key <key>', 'key of the uploaded control plane certificates')
    .option('--apiserver-advertise-address <address>', 'with --control-plane: address its API server tells others')
    .option('--apiserver-bind-port <port>', 'with --control-plane: port of its API server');
}

const JOIN_EXAMPLES = `Examples:
  # as token create --print-join-command prints it, here and on hosts over SSH
  kubeletadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:<hex> --host root@10.0.0.12
  kubeletadm join 10.0.0.10:6443 --token abcdef.0123456789abcdef --ca-cert ca.crt --host root@10.0.0.12
  # by a kubeconfig with the cluster's CA, from disk or from the web
  kubeletadm join --discovery-file cluster.conf --host node2 --host node3 --dry-run
  kubeletadm join --discovery-file https://config.example.com/cluster.conf --tls-bootstrap-token abcdef.0123456789abcdef
  kubeletadm join --config join.yaml --overlay node2-kubelet.yaml --host node2`;
