import type { Command } from 'commander';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import { AGENT_DIRECTORY } from '../kubeadm/node-agent/layout.ts';
import { KUBELET_CONF } from '../kubelet/facts/kubelet-identity.ts';
import { addAgentOptions } from './agent-options.ts';
import type { On } from './command.ts';

/** `agent`. */
export function defineAgent(agent: Command, on: On): void {
  agent
    .option('--kubeconfig <file>', 'kubeconfig of the kubelet, whose credential the agent uses', KUBELET_CONF)
    .option('--node-name <name>', 'name of its Node (default: as the kubelet of this machine is started)')
    .option('-n, --namespace <namespace>', 'namespace of the ConfigMaps that it may be assigned', AGENT_NAMESPACE)
    .option('--directory <dir>', 'where it keeps its state and checkpoints', AGENT_DIRECTORY)
    .option('--local-config <file>', 'what the kubelet reads while nothing is assigned', '/var/lib/kubelet/config.yaml');
  addAgentOptions(agent);
  on(agent, async () => (await import('./agent.ts')).runAgentCommand).addHelpText('after', () => `\n${TEXT}`);
}

const TEXT = `What a Node is assigned stands in its annotation kubeletadm.dev/config-source, in the form of spec.configSource:
  {"configMap": {"namespace": "${AGENT_NAMESPACE}", "name": "node-config-g2gfckm55t", "kubeletConfigKey": "kubelet"}}
What became of it stands in the annotation kubeletadm.dev/config-status, in the form of status.config, and in the condition KubeletConfigOk.

The kubelet's unit has to read the pointer of the agent after its own files:
  EnvironmentFile=-${AGENT_DIRECTORY}/active.env

Examples:
  kubeletadm agent --trial 2m --allow safe
  kubeletadm agent --kubeconfig /var/lib/kubelet/kubeconfig --node-name node1`;
