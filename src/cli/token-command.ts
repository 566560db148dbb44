import type { Command } from 'commander';
import type { On, Run } from './command.ts';
import { addSections } from './help-layout.ts';
import { addClusterOptions, collectList, outputOption } from './options.ts';

/** `token create|delete|generate|list`. */
export function defineToken(token: Command, on: On): void {
  addClusterOptions(token);
  createCommand(token, on);
  listCommand(token, on);
  deleteCommand(token, on);
  on(
    token.command('generate').description('Generate and print a token without creating it in the cluster'),
    async (): Promise<Run> => (await import('./token.ts')).runTokenGenerate,
  );
}

function createCommand(token: Command, on: On): void {
  const create = addClusterOptions(token.command('create').description('Create a bootstrap token in the cluster and print it'))
    .argument('[token]', 'token of the form [a-z0-9]{6}.[a-z0-9]{16} (default: a generated one)')
    .option('--config <file>', "kubeadm configuration with the bootstrapTokens to create; '-' for standard input")
    .option('--description <text>', 'description of the token, e.g. its purpose')
    .option(
      '--groups <groups>',
      'groups the token authenticates as (default: system:bootstrappers:kubeadm:default-node-token)',
      collectList,
    )
    .option('--ttl <duration>', 'TTL of the token, e.g. 2h; 0: never expires (default: 24h0m0s)')
    .option('--usages <usages>', 'usages of the token (default: signing,authentication)', collectList)
    .option('--print-join-command', 'print the join command for the token')
    .option('--certificate-key <key>', 'with --print-join-command: key of the uploaded control plane certificates')
    .option('--dry-run', 'print the plan without changing anything')
    .addOption(outputOption(['text', 'json', 'yaml'], 'output format of the plan'));
  on(create, async (): Promise<Run> => (await import('./token.ts')).runTokenCreate);
  addSections(create, {
    examples: `  kubeletadm token create --print-join-command
  kubeletadm token create --ttl 2h --description 'for rack 7' --kubeconfig admin.conf
  kubeletadm token create --config init.yaml`,
  });
}

function listCommand(token: Command, on: On): void {
  const list = addClusterOptions(token.command('list').description('List the bootstrap tokens of the cluster, with their secrets'));
  on(list.addOption(outputOption(['text', 'json', 'yaml'])), async (): Promise<Run> => (await import('./token.ts')).runTokenList);
  addSections(list, { examples: '  kubeletadm token list\n  kubeletadm token list -o yaml --kubeconfig admin.conf' });
}

function deleteCommand(token: Command, on: On): void {
  const remove = addClusterOptions(token.command('delete').description('Delete bootstrap tokens from the cluster'))
    .argument('<token...>', 'tokens or token IDs (the six characters before the dot)')
    .option('--dry-run', 'check whether the tokens exist without deleting them');
  on(remove, async (): Promise<Run> => (await import('./token.ts')).runTokenDelete);
  addSections(remove, { examples: '  kubeletadm token delete abcdef 9vr73a.a8uxyaju799qwdjv' });
}
