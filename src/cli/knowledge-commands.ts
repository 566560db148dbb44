import { type Command, Option } from 'commander';
import { outputOption } from './options.ts';
import type { On, Run } from './program.ts';

/** What the program knows about kubelets, below `config`. */
export function addKnowledgeCommands(config: Command, on: On): void {
  explainCommand(config, on);
  defaultsCommand(config, on);
}

function explainCommand(config: Command, on: On): void {
  const explain = config
    .command('explain')
    .description('Explain a field of KubeletConfiguration, a flag of the kubelet or a feature gate')
    .argument('[name]', 'e.g. evictionHard, authentication.x509, --node-ip, NodeSwap; the begin of field names; default: all fields')
    .option('--kubernetes-version <version>', 'the kubelet to explain it for, 1.10 to 1.36 (default: 1.36)')
    .option('--recursive', 'members of members too')
    // A flag of the kubelet is what is asked for, not one of ours.
    .allowUnknownOption();
  on(explain.addOption(outputOption(['text', 'json', 'yaml'])), async (): Promise<Run> => (await import('./config-explain.ts')).runExplain);
  explain.addHelpText(
    'after',
    `
Examples:
  kubeletadm config explain maxPods --kubernetes-version 1.30
  kubeletadm config explain authentication --recursive
  kubeletadm config explain --node-labels
  kubeletadm config explain NodeSwap -o json`,
  );
}

function defaultsCommand(config: Command, on: On): void {
  const defaults = config
    .command('defaults')
    .description('Print the configuration that is in force when nothing is configured')
    .option('--kubernetes-version <version>', 'the kubelet whose defaults they are, 1.20 to 1.36 (default: 1.36)')
    .addOption(
      new Option('--profile <profile>', "whose defaults: the kubelet's own, or what kubeadm writes")
        .choices(['kubelet', 'kubeadm'])
        .default('kubelet'),
    );
  on(defaults.addOption(outputOption(['yaml', 'json'])), async (): Promise<Run> => (await import('./config-defaults.ts')).runDefaults);
  defaults.addHelpText(
    'after',
    `
Examples:
  kubeletadm config defaults --kubernetes-version 1.30
  kubeletadm config defaults --profile kubeadm -o json`,
  );
}
