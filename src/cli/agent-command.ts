import { type Command, Option } from 'commander';
import { AGENT_DIRECTORY } from '../core/dynamic/agent/layout.ts';
import type { On } from './program.ts';

/** `agent`. */
export function defineAgent(agent: Command, on: On): void {
  agent
    .requiredOption('--kubeconfig <file>', "the agent's own credentials")
    .option('--context <name>', 'context of the kubeconfig')
    .option('--node-name <name>', 'name of its Node (default: as the kubelet of this machine is started)')
    .option('-n, --namespace <namespace>', 'where the ConfigMaps are that it may be assigned', 'kube-system')
    .option('--directory <dir>', 'where it keeps its state and checkpoints', AGENT_DIRECTORY)
    .option('--local-config <file>', 'what the kubelet reads while nothing is assigned', '/var/lib/kubelet/config.yaml')
    .option('--trial <duration>', 'how long a configuration has to be healthy until it is the last known good', '10m')
    .addOption(
      new Option('--allow <class>', 'the worst change it makes to a running node; what wants a drain is made on a cordoned one as well')
        .choices(['safe', 'restart-pods', 'drain', 'unsafe'])
        .default('restart-pods'),
    )
    .option('--keep <count>', 'how many checkpoints to keep besides those that are needed', '5')
    .option('--spread <duration>', 'over what time an edit of a ConfigMap in place reaches the nodes', '10s')
    .option('--listen <address:port>', '/metrics and /healthz are served there; empty: nowhere', '127.0.0.1:10246');
  on(agent, async () => (await import('./agent.ts')).runAgentCommand).addHelpText('after', () => `\n${TEXT}`);
}

const TEXT = `What a Node is assigned stands in its annotation kubeletadm.dev/config-source, in the form of spec.configSource:
  {"configMap": {"namespace": "kube-system", "name": "node-config-g2gfckm55t", "kubeletConfigKey": "kubelet"}}
What became of it stands in the annotation kubeletadm.dev/config-status, in the form of status.config, and in the condition KubeletConfigOk.

The kubelet's unit has to read the pointer of the agent after its own files:
  EnvironmentFile=-${AGENT_DIRECTORY}/active.env

Examples:
  kubeletadm agent --kubeconfig /etc/kubernetes/kubeletadm-agent.conf
  kubeletadm agent --kubeconfig agent.conf --trial 2m --allow safe`;
