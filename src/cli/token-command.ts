import { type Command, Option } from 'commander';
import type { On, Run } from './command.ts';
import { addClusterOptions, collectList, outputOption } from './options.ts';

/** `token create|delete|generate|list`. */
export function defineToken(token: Command, on: On): void {
  addClusterOptions(token);
  createCommand(token, on);
  listCommand(token, on);
  deleteCommand(token, on);
  on(
    token.command('generate').description('Print a new token without telling the cluster'),
    async (): Promise<Run> => (await import('./token.ts')).runTokenGenerate,
  );
}

function createCommand(token: Command, on: On): void {
  const create = addClusterOptions(token.command('create').description('Create a bootstrap token in the cluster and print it'))
    .argument('[token]', 'of the form [a-z0-9]{6}.[a-z0-9]{16}; default: a new one')
    .option('--config <file>', "kubeadm configuration whose bootstrapTokens are created; '-' is standard input")
    .option('--description <text>', 'what it is for')
    .option('--groups <groups>', 'groups who logs in with it is in (default: system:bootstrappers:kubeadm:default-node-token)', collectList)
    .option('--ttl <duration>', 'TTL of the token, e.g. 2h (default: 24h0m0s; 0: the token never expires)')
    .option('--usages <usages>', 'what it may be used for (default: signing,authentication)', collectList)
    .option('--print-join-command', 'print the command that joins a node by it')
    .option('--certificate-key <key>', 'with --print-join-command: of the uploaded control plane certificates')
    .option('--dry-run', 'print what would be created and change nothing')
    .addOption(
      new Option('-o, --output <format>', 'how the plan of --dry-run is printed').choices(['text', 'json', 'yaml']).default('text'),
    );
  on(create, async (): Promise<Run> => (await import('./token.ts')).runTokenCreate);
  create.addHelpText(
    'after',
    `
Examples:
  kubeletadm token create --print-join-command
  kubeletadm token create --ttl 2h --description 'for rack 7' --kubeconfig admin.conf
  kubeletadm token create --config init.yaml`,
  );
}

function listCommand(token: Command, on: On): void {
  const list = addClusterOptions(token.command('list').description('List the bootstrap tokens of the cluster, with their secrets'));
  on(list.addOption(outputOption(['text', 'json', 'yaml'])), async (): Promise<Run> => (await import('./token.ts')).runTokenList);
  list.addHelpText('after', '\nExamples:\n  kubeletadm token list\n  kubeletadm token list -o yaml --kubeconfig admin.conf');
}

function deleteCommand(token: Command, on: On): void {
  const remove = addClusterOptions(token.command('delete').description('Delete bootstrap tokens from the cluster'))
    .argument('<token...>', 'tokens, or their ids: the six characters before the dot')
    .option('--dry-run', 'only look whether they are there');
  on(remove, async (): Promise<Run> => (await import('./token.ts')).runTokenDelete);
  remove.addHelpText('after', '\nExamples:\n  kubeletadm token delete abcdef 9vr73a.a8uxyaju799qwdjv');
}
