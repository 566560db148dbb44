import type { Command } from 'commander';
import { AGENT_DIRECTORY } from '../core/dynamic/agent/layout.ts';
import { addAgentOptions } from './agent-options.ts';
import type { On } from './program.ts';

/** `agent`. */
export function defineAgent(agent: Command, on: On): void {
  agent
    .requiredOption('--kubeconfig <file>', "the agent's own credentials")
    .option('--token-file <file>', 'the token of the kubeconfig, which it renews itself')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--node-name <name>', 'name of its Node (default: as the kubelet of this machine is started)')
    .option('-n, --namespace <namespace>', 'where the ConfigMaps are that it may be assigned', 'kube-system')
    .option('--directory <dir>', 'where it keeps its state and checkpoints', AGENT_DIRECTORY)
    .option('--local-config <file>', 'what the kubelet reads while nothing is assigned', '/var/lib/kubelet/config.yaml');
  addAgentOptions(agent);
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
