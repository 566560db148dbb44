import { Argument, type Command, Option } from 'commander';
import { type ExitCode, formatProblem, usageError } from '../base/errors.ts';
import type { CompareRequest } from '../fleet/use-cases/compare-configs.ts';
import type { CommandOptions, On } from './command.ts';
import type { ConfigDefaultsRequest, ConfigSchemaRequest } from './config-defaults.ts';
import type { ConfigExplainRequest } from './config-explain.ts';
import type { ConfigFromNodeRequest } from './config-from-node.ts';
import type { ConfigMigrateRequest } from './config-migrate.ts';
import { addSections, DEFAULT_KUBERNETES_MINOR, NEWEST_KUBERNETES_MINOR } from './help-layout.ts';
import { flagChoice, flagList, flagText } from './option-values.ts';
import { addClusterOptions, addFleetNames, addSshOptions, collect, readOutputOption, withoutEffect } from './options.ts';
import type { Services } from './output/services.ts';
import type { DocumentFormat } from './output/show-document.ts';
import { outputOption } from './output-options.ts';
import { connectionRequest, fleetNames, kubeconfigRequest, nodeArgument, outputRequest, readFormat } from './request-parts.ts';

/** Read-only commands about kubelet configurations, below `config`. */
export function addKubeletConfigCommands(config: Command, on: On): void {
  explainCommand(config, on);
  defaultsCommand(config, on);
  diffCommand(config, on);
  fromNodeCommand(config, on);
  schemaCommand(config, on);
}

/** Kinds with a JSON Schema. */
const SCHEMA_KINDS = [
  'KubeletConfiguration',
  'KubeletConfigurationOverlay',
  'InitConfiguration',
  'ClusterConfiguration',
  'JoinConfiguration',
  'ResetConfiguration',
  'UpgradeConfiguration',
] as const;

function schemaCommand(config: Command, on: On): void {
  const schema = config
    .command('schema')
    .description('Print the JSON Schema of configuration files, for editors')
    .addArgument(new Argument('[kind]', 'kind of the documents (default: any)').choices(SCHEMA_KINDS))
    .option(
      '--kubernetes-version <version>',
      `kubelet version of the fields of KubeletConfiguration, 1.11 to ${NEWEST_KUBERNETES_MINOR} (default: ${DEFAULT_KUBERNETES_MINOR})`,
    );
  on(schema, schemaRequest, async (...args) => (await import('./config-defaults.ts')).runConfigSchema(...args));
  addSections(schema, {
    notes: `Overlays of init, join and fleets use the schema of KubeletConfiguration. For fleet files, run kubeletadm fleet schema. Editors find the schema by the first line of a file:
  # yaml-language-server: $schema=config.schema.json`,
    examples: `  kubeletadm config schema > config.schema.json
  kubeletadm config schema KubeletConfiguration --kubernetes-version 1.30 > kubelet.schema.json`,
  });
}

function schemaRequest([kind]: readonly string[], options: CommandOptions): ConfigSchemaRequest {
  return {
    kind: SCHEMA_KINDS.find((each) => each === kind),
    kubernetesVersion: flagText(options, 'kubernetesVersion'),
  };
}

function explainCommand(config: Command, on: On): void {
  const explain = config
    .command('explain')
    .description('Explain a field of KubeletConfiguration, a flag of the kubelet or a feature gate')
    .argument(
      '[name]',
      'name of a field, flag or feature gate, e.g. evictionHard, authentication.x509, --node-ip or NodeSwap, or a part of a name, e.g. swap (default: all fields)',
    )
    .option('--kubernetes-version <version>', `kubelet version, 1.10 to ${NEWEST_KUBERNETES_MINOR} (default: ${DEFAULT_KUBERNETES_MINOR})`)
    .option('--recursive', 'include nested fields')
    // The argument can be a kubelet flag.
    .allowUnknownOption();
  on(explain.addOption(readOutputOption()), explainRequest, async (...args) => (await import('./config-explain.ts')).runExplain(...args));
  addSections(explain, {
    notes: 'For the code of an error or a warning, see kubeletadm explain.',
    examples: `  kubeletadm config explain swap
  kubeletadm config explain maxPods --kubernetes-version 1.30
  kubeletadm config explain authentication --recursive
  kubeletadm config explain --node-labels
  kubeletadm config explain NodeSwap -o json`,
  });
}

function defaultsCommand(config: Command, on: On): void {
  const defaults = config
    .command('defaults')
    .description('Print the default configuration of a kubelet version')
    .option('--kubernetes-version <version>', `kubelet version, 1.20 to ${NEWEST_KUBERNETES_MINOR} (default: ${DEFAULT_KUBERNETES_MINOR})`)
    .addOption(
      new Option('--profile <profile>', 'kubelet: defaults of the kubelet; kubeadm: the configuration that kubeadm writes')
        .choices(['kubelet', 'kubeadm'])
        .default('kubelet'),
    );
  on(defaults.addOption(outputOption(['yaml', 'json'])), defaultsRequest, async (...args) =>
    (await import('./config-defaults.ts')).runDefaults(...args),
  );
  addSections(defaults, {
    examples: `  kubeletadm config defaults --kubernetes-version 1.30
  kubeletadm config defaults --profile kubeadm -o json`,
  });
}

function diffCommand(config: Command, on: On): void {
  const diff = config
    .command('diff')
    .description('Compare two effective configurations, including default values')
    .argument(
      '<first>',
      "a file, '-' (standard input), cluster (ConfigMap kube-system/kubelet-config), node/NAME (over the API server), host/[user@]ADDRESS[:port] (over SSH), host/localhost (the local host), fleet/HOST (the configuration on a host with the fields that the fleet file declares for the host) or defaults/1.X (defaults of a version)",
    )
    .argument('<second>', 'second configuration, in the same form')
    .option(
      '--kubernetes-version <version>',
      `kubelet version used for both configurations (default: the version of each configuration, if known, otherwise ${DEFAULT_KUBERNETES_MINOR})`,
    )
    .option('--exit-code', 'exit with code 6 if the configurations differ');
  addSshOptions(addClusterOptions(addFleetNames(diff.addOption(outputOption(['text', 'json', 'yaml'])))));
  on(diff, diffRequest, runDiff);
  addSections(diff, {
    examples: `  kubeletadm config diff old.yaml new.yaml --kubernetes-version 1.34
  kubeletadm config diff cluster node/worker-1 --kubeconfig admin.conf
  kubeletadm config diff host/root@10.0.0.11 host/root@10.0.0.12 -o yaml
  # what apply would change
  kubeletadm config diff host/edge-017 fleet/edge-017
  kubeletadm config diff defaults/1.25 defaults/1.36`,
  });
}

/** `config migrate`: converts kubeadm documents, or a kubelet configuration, to another version. */
export function addMigrateCommand(config: Command, on: On): void {
  const migrate = config
    .command('migrate')
    .description('Convert a KubeletConfiguration for another kubelet version, or older kubeadm documents to v1beta4')
    .argument('[file]', "KubeletConfiguration to convert; '-' for standard input (required without --old-config)")
    .option(
      '--from <version>',
      `kubelet version the file was written for, 1.20 to ${NEWEST_KUBERNETES_MINOR} (required without --old-config)`,
    )
    .option('--to <version>', 'kubelet version to convert the file for (required without --old-config)')
    .option(
      '--flags <file>',
      'source of kubelet flags to convert to fields: unit, drop-in or environment file (kubelet.service, 10-kubeadm.conf, kubeadm-flags.env, kubelet.env), output of systemctl cat kubelet, file with a command line, or a command line (repeatable; files are combined as by systemd)',
      collect,
    )
    .option('--kubelet-extra-args <name=value>', 'kubelet flag to convert to a field (repeatable)', collect)
    .option('--keep-defaults', 'write default values that differ between the versions to the file, to keep the old behaviour')
    .option('--force', 'remove settings that have no equivalent in the new version')
    .option(
      '--old-config <file>',
      "kubeadm documents to convert to v1beta4, or '-' for standard input; KubeletConfiguration documents are copied unchanged",
    )
    .addOption(withoutEffect('--allow-experimental-api'))
    .option('--new-config <file>', 'file to write the result to (default: standard output)')
    .option('--new-flags <file>', 'output file for flags without a corresponding field, in the format of kubeadm-flags.env');
  on(migrate.addOption(outputOption(['text', 'json', 'yaml'])), migrateRequest, async (...args) =>
    (await import('./config-migrate.ts')).runMigrate(...args),
  );
  addSections(migrate, {
    examples: `  kubeletadm config migrate kubelet.yaml --from 1.22 --to 1.36 > new.yaml
  kubeletadm config migrate kubelet.yaml --from 1.26 --to 1.36 \\
    --flags kubeadm-flags.env --new-config new.yaml --new-flags new.env
  kubeletadm config migrate kubelet.yaml --from 1.26 --to 1.36 \\
    --flags kubelet.service --flags 10-kubeadm.conf --flags /etc/default/kubelet
  kubeletadm config migrate --old-config v1beta3.yaml`,
  });
}

function fromNodeCommand(config: Command, on: On): void {
  const fromNode = config
    .command('from-node')
    .description('Export the effective configuration (configz) of a kubelet as a file, without node-specific and deprecated fields')
    .argument('<node>', 'name of the Node, as NAME or node/NAME, or of its host in the fleet file')
    .option('--without-defaults', 'omit default values')
    .addOption(
      new Option(
        '--kind <kind>',
        'kind of the file; overlay: fields to merge into those of a node, configuration: a complete KubeletConfiguration without node-specific fields (default: overlay; for kubelets up to 1.23, a complete KubeletConfiguration with these fields, for this node only)',
      ).choices(['overlay', 'configuration']),
    )
    .option('--overlay-out <file>', 'file to write the node-specific fields to, for --overlay of init and join');
  addFleetNames(addClusterOptions(fromNode.addOption(outputOption(['yaml', 'json']))));
  on(fromNode, fromNodeRequest, async (...args) => (await import('./config-from-node.ts')).runFromNode(...args));
  addSections(fromNode, {
    examples: `  kubeletadm config from-node worker-1 --without-defaults --kubeconfig admin.conf > kubelet.yaml
  kubeletadm config from-node worker-1 --overlay-out worker-1.yaml`,
  });
}

function explainRequest(args: readonly string[], options: CommandOptions): ConfigExplainRequest {
  if (args.length > 1) throw usageError('config explain takes at most one name');
  return {
    name: args[0] ?? '',
    kubernetesVersion: flagText(options, 'kubernetesVersion'),
    recursive: options.recursive === true,
    format: readFormat(options),
  };
}

function defaultsRequest(_: readonly string[], options: CommandOptions): ConfigDefaultsRequest {
  return {
    kubernetesVersion: flagText(options, 'kubernetesVersion'),
    profile: flagChoice(options, 'profile', ['kubelet', 'kubeadm']),
    format: flagChoice(options, 'output', ['yaml', 'json']),
  };
}

function diffRequest([first, second, ...more]: readonly string[], options: CommandOptions): ConfigDiffRequest {
  if (first === undefined || second === undefined || more.length > 0)
    throw usageError('config diff needs two configurations', 'Pass two configurations, e.g. kubeletadm config diff old.yaml new.yaml');
  return {
    sides: [first, second],
    kubernetesVersion: flagText(options, 'kubernetesVersion'),
    cluster: kubeconfigRequest(options),
    file: fleetNames(options),
    connection: connectionRequest(options),
    format: outputRequest(options).format,
    failsIfDifferent: options.exitCode === true,
  };
}

function migrateRequest(args: readonly string[], options: CommandOptions): ConfigMigrateRequest {
  const oldConfig = flagText(options, 'oldConfig');
  const newConfig = flagText(options, 'newConfig');
  if (oldConfig !== undefined) {
    if (args.length > 0 || options.from !== undefined || options.to !== undefined)
      throw usageError('--old-config converts kubeadm documents and cannot be combined with a file, --from or --to');
    return { kind: 'kubeadm', oldConfig, newConfig };
  }
  const [file, ...more] = args;
  if (file === undefined || more.length > 0)
    throw usageError('config migrate needs one file', 'Pass one file, or pass kubeadm documents with --old-config');
  return {
    kind: 'kubelet',
    file,
    from: flagText(options, 'from'),
    to: flagText(options, 'to'),
    flagFiles: flagList(options, 'flags'),
    extraArgs: flagList(options, 'kubeletExtraArgs'),
    keepDefaults: options.keepDefaults === true,
    force: options.force === true,
    newConfig,
    newFlags: flagText(options, 'newFlags'),
    format: outputRequest(options).format,
  };
}

function fromNodeRequest(args: readonly string[], options: CommandOptions): ConfigFromNodeRequest {
  const [node, ...more] = args;
  if (node === undefined || more.length > 0) throw usageError('config from-node needs one node', 'Pass one node');
  return {
    choice: { kind: 'names', names: [nodeArgument(node)], file: fleetNames(options), connection: connectionRequest(options) },
    kind: options.kind === undefined ? undefined : flagChoice(options, 'kind', ['overlay', 'configuration']),
    withoutDefaults: options.withoutDefaults === true,
    overlayOut: flagText(options, 'overlayOut'),
    isSeparated: flagText(options, 'overlayOut') !== undefined,
    cluster: kubeconfigRequest(options),
    format: flagChoice(options, 'output', ['yaml', 'json']),
  };
}

interface ConfigDiffRequest extends CompareRequest {
  readonly format: DocumentFormat;
  /** Exit code 6 if they differ. */
  readonly failsIfDifferent: boolean;
}

/** `config diff A B`: exit code 6 with `--exit-code` when the effective configurations differ. */
async function runDiff(services: Services, request: ConfigDiffRequest): Promise<ExitCode> {
  const [{ compareConfigs }, { diffDocument, renderDiff }, { renderDocument }] = await Promise.all([
    import('../fleet/use-cases/compare-configs.ts'),
    import('../kubelet/effective/render.ts'),
    import('./output/show-document.ts'),
  ]);
  const { format, failsIfDifferent } = request;
  const { before, after, diff } = await compareConfigs(services, request, (warning) =>
    services.output.stderr(`warning: ${formatProblem(warning)}\n`),
  );
  services.output.stdout(format === 'text' ? renderDiff(diff, before, after) : renderDocument(diffDocument(diff, before, after), format));
  return failsIfDifferent && diff.differences.length > 0 ? 6 : 0;
}
