import { type Command, Option } from 'commander';
import type { ExitCode } from '../base/errors.ts';
import type { PullImagesRequest } from '../fleet/use-cases/open-pull-images.ts';
import type { RenderRequest } from '../fleet/use-cases/render-node-files.ts';
import type { DocumentsRequest } from '../kubeadm/use-cases/resolve-init-documents.ts';
import type { CommandOptions, On } from './command.ts';
import type { PrintDefaultsRequest } from './config-print.ts';
import type { UserDataRequest } from './config-user-data.ts';
import { addSections } from './help-layout.ts';
import { addInitOptions } from './init-command.ts';
import { addKubeletConfigCommands, addMigrateCommand } from './kubelet-config-commands.ts';
import { flagChoice, flagList, flagText } from './option-values.ts';
import {
  addClusterOptions,
  addDryRunOptions,
  addHostOptions,
  addImagesOptions,
  addInheritedOption,
  addNodeOptions,
  addPrinterFlags,
  addShowOrigin,
  addSshOptions,
  addTargetOption,
  collect,
  collectList,
  readOutputOption,
} from './options.ts';
import type { Services } from './output/services.ts';
import type { ReadFormat } from './output/show-document.ts';
import type { WithPlan } from './output/show-plan.ts';
import { outputOption } from './output-options.ts';
import { hostsRequest, kubeadmFlags, kubeconfigRequest, nodeRequest, planRequest, readFormat, runRequest } from './request-parts.ts';
import { defineValidate, VALIDATE } from './validate-command.ts';

/** `config` and its subcommands. */
export function defineConfig(config: Command, on: On): void {
  addInheritedOption(config, '--kubeconfig <file>', 'kubeconfig of an administrator');
  const print = config.command('print').description('Print default configurations');
  for (const action of ['init', 'join', 'reset', 'upgrade'] as const) {
    const command = print.command(`${action}-defaults`).description(`Print the default configuration of ${action}`);
    if (action === 'init')
      command.option(
        '--component-configs <kinds>',
        'component configurations to include: KubeletConfiguration, KubeProxyConfiguration',
        collectList,
      );
    on(
      command,
      (_, options): PrintDefaultsRequest => ({ action, componentConfigs: flagList(options, 'componentConfigs') }),
      async (...args) => (await import('./config-print.ts')).runPrintDefaults(...args),
    );
  }
  defineValidate(config.command('validate').description(VALIDATE), on);
  defineImages(config, on);
  addMigrateCommand(config, on);
  const render = config
    .command('render')
    .description('Print the files that init would write to a node')
    .argument('[path...]', 'files to print (default: all)');
  addShowOrigin(render.addOption(outputOption(['text', 'json', 'yaml'])));
  addInitOptions(addClusterOptions(addHostOptions(addNodeOptions(render), 'directory to read instead of /, e.g. the root of an image')));
  for (const option of render.options) if (NOT_RENDERED.has(option.long ?? '')) option.hideHelp();
  on(render, renderRequest, async (...args) => (await import('./config-render.ts')).runRender(...args));
  defineUserData(config, on);
  addKubeletConfigCommands(config, on);
}

function defineImages(config: Command, on: On): void {
  const images = config.command('images').description('List and pull the container images of control planes');
  const list = images.command('list').description('Print the images of a control plane, including CoreDNS, kube-proxy, pause and etcd');
  addImagesOptions(list).addOption(readOutputOption());
  on(
    addPrinterFlags(list),
    (_, options): ListImagesRequest => ({
      config: flagText(options, 'config'),
      flags: kubeadmFlags(options),
      format: readFormat(options),
    }),
    runListImages,
  );
  addSections(list, { examples: IMAGES_EXAMPLES });
  const pull = images.command('pull').description('Pull the images of a control plane with the container runtime of each host');
  addImagesOptions(pull).option('--cri-socket <socket>', 'CRI socket of the container runtime (default: detected)');
  on(
    addSshOptions(addTargetOption(addDryRunOptions(pull))),
    (_, options): WithPlan<PullImagesRequest> => ({
      config: flagText(options, 'config'),
      flags: kubeadmFlags(options),
      criSocket: flagText(options, 'criSocket'),
      hosts: hostsRequest(options),
      plan: planRequest(options),
      run: runRequest(options),
    }),
    runPullImages,
  );
  addSections(pull, { examples: PULL_EXAMPLES });
}

function defineUserData(config: Command, on: On): void {
  const userData = config
    .command('user-data')
    .description('Print user data (cloud-init, Butane or Ignition) that makes a host join a cluster at its first boot')
    .requiredOption(
      '--join-file <url|path>',
      'location of the JoinConfiguration: an https URL that the host fetches at its first boot, or a path on the host',
    )
    .option(
      '--join-file-ca <file>',
      'file with CA certificates to verify the server of the URL with (default: the CA certificates of the host)',
    )
    .option('--rootfs <dir>', 'directory with files for the host, e.g. the output of join --rootfs (default: no files)')
    .option('--allow-secret <path>', 'path on the host of a file in --rootfs that is not searched for secrets (repeatable)', collect)
    .option('--program <path>', 'path of kubeletadm or kubeadm on the host', '/usr/local/bin/kubeletadm')
    .option('--http-proxy <url>', 'proxy for http requests of the container runtime, the kubelet and join')
    .option('--https-proxy <url>', 'proxy for https requests of the container runtime, the kubelet and join')
    .option(
      '--no-proxy <list>',
      'addresses, subnets and domains that are reached without the proxy, comma-separated; required with a proxy',
    )
    .addOption(new Option('--variant <variant>', 'operating system, with -o butane').choices(['fcos', 'flatcar']).default('fcos'))
    .addOption(outputOption(['cloud-init', 'butane', 'ignition']));
  on(userData, userDataRequest, async (...args) => (await import('./config-user-data.ts')).runUserData(...args));
  addSections(userData, { notes: USER_DATA_NOTES, examples: USER_DATA_EXAMPLES });
}

function userDataRequest(_: readonly string[], options: CommandOptions): UserDataRequest {
  return {
    format: flagChoice(options, 'output', ['cloud-init', 'butane', 'ignition']),
    variant: flagChoice(options, 'variant', ['fcos', 'flatcar']),
    rootDir: flagText(options, 'rootfs'),
    allowedSecrets: flagList(options, 'allowSecret'),
    joinFile: flagText(options, 'joinFile') ?? '',
    joinFileCa: flagText(options, 'joinFileCa'),
    program: flagText(options, 'program') ?? '',
    proxy: {
      httpProxy: flagText(options, 'httpProxy'),
      httpsProxy: flagText(options, 'httpsProxy'),
      noProxy: flagText(options, 'proxy'),
    },
  };
}

function renderRequest(paths: readonly string[], options: CommandOptions): WithPlan<RenderRequest> {
  return {
    paths,
    config: flagText(options, 'config'),
    flags: kubeadmFlags(options),
    cluster: kubeconfigRequest(options),
    hosts: hostsRequest(options),
    node: nodeRequest(options),
    plan: planRequest(options),
    run: runRequest(options),
  };
}

/** Options of init without an effect on the printed files: accepted, so that `config render` takes the options of an init command. */
const NOT_RENDERED: ReadonlySet<string> = new Set([
  '--upload-certs',
  '--certificate-key',
  '--skip-certificate-key-print',
  '--force-upload',
  '--token',
  '--token-ttl',
  '--skip-token-print',
]);

const PULL_EXAMPLES = `  kubeletadm config images pull --kubernetes-version v1.36.2 --host root@cp1 --host root@cp2
  kubeletadm config images pull --config init.yaml --dry-run`;

const IMAGES_EXAMPLES = `  kubeletadm config images list --kubernetes-version v1.36.2
  kubeletadm config images list --config init.yaml | xargs -n1 crictl pull
  kubeletadm config images list --image-repository registry.example.org/k8s -o json`;

const USER_DATA_NOTES = `The command refuses files with a text that looks like a token, a private key or a password, and omits the bootstrap kubeconfig of join --rootfs. It does not find compressed or encoded secrets, and secrets under other names. kubeletadm-join.service fetches the join file, runs join, and retries both until join succeeds.`;

const USER_DATA_EXAMPLES = `  kubeletadm join --config join.yaml --rootfs ./node
  kubeletadm config user-data --rootfs ./node --join-file https://config.example.com/join.yaml > user-data.yaml
  kubeletadm config user-data --rootfs ./node --join-file /run/join.yaml --program /opt/bin/kubeletadm -o ignition
  kubeletadm config user-data --join-file https://config.example.com/join.yaml -o butane --variant flatcar`;

interface ListImagesRequest extends DocumentsRequest {
  readonly format: ReadFormat;
}

/** `config images list`: the images of a control plane with this configuration. */
async function runListImages(services: Services, request: ListImagesRequest): Promise<ExitCode> {
  const [{ listImages }, { renderKubeadmDocument }] = await Promise.all([
    import('../kubeadm/use-cases/list-images.ts'),
    import('./output/show-document.ts'),
  ]);
  const { format } = request;
  const { images, warnings } = await listImages(services, request);
  const reporter = services.reporter({ verbosity: 0, format: 'text' });
  for (const { code, message } of warnings) reporter.report({ level: 'warning', code, message });
  const document = { kind: 'Images', apiVersion: 'output.kubeadm.k8s.io/v1alpha3', images };
  if (format === 'text') services.output.stdout(images.map((image) => `${image}\n`).join(''));
  else services.output.document(renderKubeadmDocument(document, format));
  return 0;
}

/** `config images pull`. */
async function runPullImages(services: Services, request: WithPlan<PullImagesRequest>): Promise<ExitCode> {
  const [{ openPullImages }, { runOnHosts }] = await Promise.all([
    import('../fleet/use-cases/open-pull-images.ts'),
    import('./run-on-hosts.ts'),
  ]);
  return runOnHosts(services, request, {
    title: 'config images pull',
    open: () => openPullImages(services, request),
    applied: ({ images }) => {
      const prefix = services.programName === 'kubeadm' ? '[config/images] ' : '';
      services.output.stdout(images.map((image) => `${prefix}Pulled ${image}\n`).join(''));
    },
  });
}
