import { AGENT_COMMAND, CONTROLLER_COMMAND, VERSION_COMMAND } from './agent-commands.ts';
import type { CommandEntry } from './command.ts';

/** All commands, in the order of help. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'init',
    description: 'Bootstrap a control plane',
    load: async () => (await import('./init-command.ts')).defineInit,
    hasPhases: true,
  },
  {
    name: 'join',
    description: 'Join a node to a cluster',
    load: async () => (await import('./join-command.ts')).defineJoin,
    hasPhases: true,
  },
  {
    name: 'cluster',
    description: 'Prepare an existing cluster for joining nodes',
    load: async () => (await import('./cluster-command.ts')).defineCluster,
  },
  {
    name: 'reset',
    description: 'Revert the changes made to a host by init or join',
    load: async () => (await import('./reset-command.ts')).defineReset,
    hasPhases: true,
  },
  {
    name: 'plan',
    description: 'Show the changes a fleet file would make to its hosts (same as fleet plan)',
    load: async () => (await import('./fleet-plan-command.ts')).definePlan,
  },
  {
    name: 'apply',
    description: 'Apply a fleet file or a saved plan (same as fleet apply)',
    load: async () => (await import('./fleet-apply-command.ts')).defineApply,
  },
  {
    name: 'undo',
    description: 'Undo the last change of hosts by kubeletadm, or return to the state after an earlier one',
    load: async () => (await import('./undo-command.ts')).defineUndo,
  },
  {
    name: 'edit',
    description: 'Edit a fleet file, one host of it, or the assigned configuration of a Node, and apply the change',
    load: async () => (await import('./edit-command.ts')).defineEdit,
  },
  {
    name: 'status',
    description: 'Show hosts and Nodes in one table: Ready, kubelet, configuration, drift, changes and certificates',
    load: async () => (await import('./status-command.ts')).defineStatus,
  },
  {
    name: 'upgrade',
    description: 'Upgrade control planes, and the kubelet configuration of nodes',
    load: async () => (await import('./upgrade-command.ts')).defineUpgrade,
    hasPhases: true,
  },
  {
    name: 'certs',
    description: 'Check and renew certificates of kubelets and control planes',
    load: async () => (await import('./certs-command.ts')).defineCerts,
  },
  {
    name: 'csr',
    description: 'List certificate signing requests (CSRs) of kubelets, and approve those for serving certificates',
    load: async () => (await import('./csr-command.ts')).defineCsr,
  },
  {
    name: 'token',
    description: 'Manage bootstrap tokens, used by nodes to discover and join a cluster',
    load: async () => (await import('./token-command.ts')).defineToken,
  },
  {
    name: 'kubeconfig',
    description: 'Print the kubeconfig of the cluster administrator, or kubeconfigs for additional users',
    load: async () => (await import('./kubeconfig-command.ts')).defineKubeconfig,
  },
  {
    name: 'config',
    description: 'Print, validate, compare and convert configuration files',
    load: async () => (await import('./config-command.ts')).defineConfig,
  },
  {
    name: 'bundle',
    description: 'Create and inspect bundles of images, packages and executables for hosts without Internet access',
    load: async () => (await import('./bundle-command.ts')).defineBundle,
  },
  { name: 'node', description: 'Inspect the configuration of a node', load: async () => (await import('./node-command.ts')).defineNode },
  {
    name: 'dynamic',
    description: 'Configure running kubelets from ConfigMaps',
    load: async () => (await import('./dynamic-command.ts')).defineDynamic,
  },
  AGENT_COMMAND,
  { ...CONTROLLER_COMMAND, load: async () => (await import('./controller-command.ts')).defineController },
  {
    name: 'rollout',
    description: 'Create, show, pause and undo rollouts of kubelet configurations (KubeletConfigRollout), like kubectl rollout',
    load: async () => (await import('./rollout-command.ts')).defineRollout,
  },
  {
    name: 'ui',
    description: 'Serve a page of all rollouts of a cluster: nodes, failures and revisions; pause, resume and undo them',
    load: async () => (await import('./ui-command.ts')).defineUi,
  },
  {
    name: 'drain',
    description: 'Cordon nodes and evict their pods, after a forecast of obstacles',
    load: async () => (await import('./maintenance-command.ts')).defineDrain,
  },
  {
    name: 'uncordon',
    description: 'Uncordon nodes that drain or maintenance start has cordoned',
    load: async () => (await import('./maintenance-command.ts')).defineUncordon,
  },
  {
    name: 'maintenance',
    description: 'Start and end the maintenance of nodes, and show nodes that are out of service',
    load: async () => (await import('./maintenance-command.ts')).defineMaintenance,
  },
  {
    name: 'fleet',
    description: 'Manage many hosts with one fleet file',
    load: async () => (await import('./fleet-command.ts')).defineFleet,
  },
  {
    name: 'explain',
    description: 'Explain the code of an error, a kubelet field, flag or gate, or the configuration of a host or Node',
    load: async () => (await import('./explain-command.ts')).defineExplain,
  },
  {
    name: 'validate',
    description: 'Validate files by their kind; the exit code is 2 if a file is invalid',
    load: async () => (await import('./validate-command.ts')).defineValidate,
  },
  {
    name: 'lab',
    description: 'Start a local lab with an API server and three hosts; does not require root',
    load: async () => (await import('./lab-command.ts')).defineLab,
  },
  {
    name: 'completion',
    description: 'Print the shell completion script for commands, options and values',
    load: async () => (await import('./completion-command.ts')).defineCompletion,
  },
  VERSION_COMMAND,
];
