import type { Command } from 'commander';
import type { On } from './command.ts';

/** A command right below the program. Its options and subcommands are defined on use, so that help is quick. */
export interface CommandEntry {
  readonly name: string;
  readonly description: string;
  readonly load: () => Promise<(command: Command, on: On) => void>;
}

/** All commands, in the order of help. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'init',
    description: 'Make a control plane on a bare host, or the first node at an API server that is there',
    load: async () => (await import('./init-command.ts')).defineInit,
  },
  { name: 'join', description: 'Join a node to a cluster', load: async () => (await import('./join-command.ts')).defineJoin },
  {
    name: 'reset',
    description: 'Take off a host what init or join put there',
    load: async () => (await import('./reset-command.ts')).defineReset,
  },
  {
    name: 'plan',
    description: 'Show what a fleet file would change on its hosts (fleet plan)',
    load: async () => (await import('./fleet-run-command.ts')).definePlan,
  },
  {
    name: 'apply',
    description: 'Bring many hosts to what a fleet file or a saved plan says (fleet apply)',
    load: async () => (await import('./fleet-run-command.ts')).defineApply,
  },
  {
    name: 'upgrade',
    description: 'Bring nodes up to what the cluster says now',
    load: async () => (await import('./upgrade-command.ts')).defineUpgrade,
  },
  {
    name: 'certs',
    description: 'Certificates of kubelets and control planes: look at them, renew them',
    load: async () => (await import('./certs-command.ts')).defineCerts,
  },
  {
    name: 'csr',
    description: "Kubelets' requests for certificates: look at them, approve those for serving",
    load: async () => (await import('./csr-command.ts')).defineCsr,
  },
  {
    name: 'token',
    description: 'Manage bootstrap tokens: what nodes find and trust a cluster by',
    load: async () => (await import('./token-command.ts')).defineToken,
  },
  {
    name: 'config',
    description: 'Look at, check and convert configuration files',
    load: async () => (await import('./config-command.ts')).defineConfig,
  },
  { name: 'node', description: 'Look at one node', load: async () => (await import('./node-command.ts')).defineNode },
  {
    name: 'dynamic',
    description: 'Configure the kubelets of nodes from ConfigMaps while they run',
    load: async () => (await import('./dynamic-command.ts')).defineDynamic,
  },
  {
    name: 'agent',
    description: 'Run beside a kubelet: give it what its Node is assigned, prove it, and go back when it does no good',
    load: async () => (await import('./agent-command.ts')).defineAgent,
  },
  { name: 'fleet', description: 'Many hosts by one file', load: async () => (await import('./fleet-command.ts')).defineFleet },
  {
    name: 'lab',
    description: 'Start a lab in this process: an API server and three hosts to try everything on; no root needed',
    load: async () => (await import('./lab-command.ts')).defineLab,
  },
  {
    name: 'completion',
    description: 'Print a script for the shell that completes commands and options',
    load: async () => (await import('./completion-command.ts')).defineCompletion,
  },
  { name: 'version', description: 'Print the version', load: async () => (await import('./version-command.ts')).defineVersion },
];
