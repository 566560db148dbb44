import type { Command } from 'commander';
import { type ExitCode, usageError } from '../base/errors.ts';
import { Secret } from '../base/text/secret.ts';
import type { RunSettings } from '../host/run-settings.ts';
import { isBootstrapToken, isCertificateKey, TOKEN_FORM } from '../kubeadm/config/bootstrap-token.ts';
import type { JoinsAsControlPlane } from '../kubeadm/token/join-command.ts';
import type { CreateTokensRequest, DeleteTokensRequest } from '../kubeadm/use-cases/cluster-tokens.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import type { CommandOptions, On } from './command.ts';
import { dryRunMark } from './dry-run.ts';
import { addSections } from './help-layout.ts';
import { flagList, flagText } from './option-values.ts';
import { addClusterOptions, addInheritedOption, addPrinterFlags, addTableOptions, collectList } from './options.ts';
import type { Services } from './output/services.ts';
import type { WithPlan } from './output/show-plan.ts';
import { outputOption } from './output-options.ts';
import { kubeadmFlags, kubeconfigRequest, planRequest, runRequest, tableRequest, verbosityOf } from './request-parts.ts';
import type { TableRequest } from './show-table.ts';

/** `token create|delete|generate|list`. */
export function defineToken(token: Command, on: On): void {
  addClusterOptions(token);
  addInheritedOption(token, '--dry-run', 'print the plan; change nothing');
  createCommand(token, on);
  listCommand(token, on);
  deleteCommand(token, on);
  on(token.command('generate').description('Generate and print a token without creating it in the cluster'), () => null, runTokenGenerate);
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
    .option('--print-join-command', 'print the full join command instead of only the token')
    .option('--certificate-key <key>', 'with --print-join-command: key to decrypt the uploaded control plane certificates with')
    .option('--dry-run', 'print the plan; change nothing')
    .addOption(outputOption(['text', 'json', 'yaml'], 'with --dry-run: output format of the plan'));
  on(create, createRequest, runTokenCreate);
  addSections(create, {
    examples: `  kubeletadm token create --print-join-command
  kubeletadm token create --ttl 2h --description 'for rack 7' --kubeconfig admin.conf
  kubeletadm token create --config init.yaml`,
  });
}

function listCommand(token: Command, on: On): void {
  const list = addClusterOptions(token.command('list').description('List the bootstrap tokens of the cluster, with their secrets'));
  on(
    addPrinterFlags(addTableOptions(list, ['text', 'name', 'json', 'yaml'])),
    (_, options): TokenListRequest => ({
      cluster: kubeconfigRequest(options),
      output: { ...tableRequest(options), verbosity: verbosityOf(options) },
    }),
    runTokenList,
  );
  addSections(list, { examples: '  kubeletadm token list\n  kubeletadm token list -o yaml --kubeconfig admin.conf' });
}

function deleteCommand(token: Command, on: On): void {
  const remove = addClusterOptions(token.command('delete').description('Delete bootstrap tokens from the cluster'))
    .argument('<token...>', 'tokens or token IDs (the six characters before the dot)')
    .option('--dry-run', 'check whether the tokens exist without deleting them');
  on(
    remove,
    (args, options): TokenDeleteRequest => ({
      ids: tokenIds(args),
      run: runRequest(options),
      cluster: kubeconfigRequest(options),
      verbosity: verbosityOf(options),
    }),
    runTokenDelete,
  );
  addSections(remove, { examples: '  kubeletadm token delete abcdef 9vr73a.a8uxyaju799qwdjv' });
}

/** The options that make up a token. */
const TOKEN_OPTIONS = ['description', 'groups', 'ttl', 'usages'] as const;

/**
 * One token of the command line, or those of a file. As in kubeadm the two are exclusive: a flag could not
 * select a token of the file.
 */
function createRequest([token]: readonly string[], options: CommandOptions): WithPlan<CreateTokensRequest> {
  const controlPlane = readCertificateKey(options);
  const config = flagText(options, 'config');
  const mixed = TOKEN_OPTIONS.filter((name) => flagText(options, name) !== undefined || flagList(options, name).length > 0);
  const given = [...(token === undefined ? [] : ['a token']), ...mixed.map((name) => `--${name}`)];
  if (config !== undefined && given.length > 0)
    throw usageError(`--config cannot be combined with ${given.join(', ')}`, 'Set the value in bootstrapTokens of the file');
  return {
    config,
    flags: { ...kubeadmFlags(options), ...(token === undefined ? {} : { 'bootstrap-token': token }) },
    printsJoinCommand: options.printJoinCommand === true,
    controlPlane,
    cluster: kubeconfigRequest(options),
    plan: planRequest(options),
    run: runRequest(options),
  };
}

/** With the key of uploaded certificates the command joins a control plane. */
function readCertificateKey(options: CommandOptions): JoinsAsControlPlane | null {
  const key = flagText(options, 'certificateKey');
  if (key === undefined) return null;
  if (options.printJoinCommand !== true) throw usageError('--certificate-key requires --print-join-command');
  if (isCertificateKey(key)) return { certificateKey: new Secret(key) };
  throw usageError(
    'the value of --certificate-key does not have 64 hexadecimal digits',
    'Pass the key that kubeletadm init phase upload-certs --upload-certs prints',
  );
}

function tokenIds(args: readonly string[]): readonly string[] {
  const ids = args.map((text, i) => {
    if (/^[a-z0-9]{6}$/.test(text)) return text;
    if (isBootstrapToken(text)) return text.slice(0, 6);
    // The argument may be a mistyped token, a secret: the message does not quote it.
    throw usageError(
      `argument ${i + 1} of token delete is neither a token id nor a token`,
      `Write a token id such as abcdef, or a token of the form ${TOKEN_FORM}`,
    );
  });
  return [...new Set(ids)];
}

/** `token generate`: needs no cluster. */
async function runTokenGenerate(services: Services): Promise<ExitCode> {
  services.output.stdout(`${(await services.newToken()).reveal()}\n`);
  return 0;
}

interface TokenListRequest {
  readonly cluster: KubeconfigRequest;
  readonly output: TableRequest & { readonly verbosity: number };
}

interface TokenDeleteRequest extends DeleteTokensRequest {
  readonly run: RunSettings;
  readonly verbosity: number;
}

/** `token list`. */
async function runTokenList(services: Services, { cluster, output }: TokenListRequest): Promise<ExitCode> {
  const [{ renderTokenList, renderTokenTable, tokenDocument }, { listClusterTokens }, { renderDocument }] = await Promise.all([
    import('../kubeadm/token/token-list.ts'),
    import('../kubeadm/use-cases/cluster-tokens.ts'),
    import('./output/show-document.ts'),
  ]);
  const { format, headers, verbosity } = output;
  const { tokens, problems } = await listClusterTokens(services, cluster);
  const reporter = services.reporter({ verbosity, format: 'text' });
  for (const message of problems) reporter.report({ level: 'warning', code: 'TOKEN_SECRET_INVALID', message });
  // Each token is a document of its own, as in kubeadm.
  if (typeof format === 'object') services.output.stdout(tokens.map((token) => renderDocument(tokenDocument(token), format)).join(''));
  else if (format === 'name') services.output.stdout(tokens.map(({ id }) => `secret/bootstrap-token-${id}\n`).join(''));
  else if (format === 'text' || format === 'wide') services.output.stdout(renderTokenTable(tokens, services.clock.now(), { headers }));
  else services.output.document(renderTokenList(tokens, format));
  return 0;
}

/**
 * `token create [TOKEN]`: prints the token or, with `--print-join-command`, the join command with the token.
 */
async function runTokenCreate(services: Services, request: WithPlan<CreateTokensRequest>): Promise<ExitCode> {
  const [{ createClusterTokens }, { plansOf, showOrApply }] = await Promise.all([
    import('../kubeadm/use-cases/cluster-tokens.ts'),
    import('./output/show-plan.ts'),
  ]);
  const reporter = services.reporter({ verbosity: request.plan.verbosity, format: 'text' });
  return createClusterTokens(services, request, reporter, ({ changes, ...planned }, create) =>
    showOrApply(services, request, { phase: 'token', plans: plansOf(changes), ...planned }, async () => {
      services.output.stdout(`${(await create()).reveal()}\n`);
      return 0;
    }),
  );
}

/** `token delete ID|TOKEN...`. */
async function runTokenDelete(services: Services, request: TokenDeleteRequest): Promise<ExitCode> {
  const { deleteClusterTokens } = await import('../kubeadm/use-cases/cluster-tokens.ts');
  const onDeleted = (id: string): void => services.output.stdout(`bootstrap token "${id}" deleted${dryRunMark(request.run)}\n`);
  const reporter = services.reporter({ verbosity: request.verbosity, format: 'text' });
  await deleteClusterTokens(services, request, { reporter, onDeleted });
  return 0;
}
