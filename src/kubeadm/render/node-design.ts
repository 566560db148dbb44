import type { Arg } from '../../base/arg.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import { identityOf, Memo } from '../../base/memo.ts';
import { renderTemplate, type Templates } from '../../codec/render-template.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import type { Taint } from '../../kube/taint.ts';
import { CONFIG_YAML, FLAGS_ENV, INSTANCE_CONFIG, KUBELET_PROGRAM, KUBELET_UNIT_FILE } from '../../kube/well-known.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue.ts';
import type { HostFacts } from '../../kubelet/facts/host-facts.ts';
import { buildKubeletFlags, isSocketFlag, joinFlags } from '../../kubelet/flags-env.ts';
import { type LayeredConfig, originTexts } from '../../kubelet/layers.ts';
import { shadowedFields } from '../../kubelet/shadowed-fields.ts';
import { kubeletConfigurationType } from '../../kubelet/type.ts';
import { checkFlagsEnv, checkUnitFile } from './check.ts';
import { layerNodeConfig, type NodeConfigInput } from './node-config.ts';
import { designUnitFiles, type UnitFilesDesign } from './unit-files.ts';

export interface NodeDesignInput
  extends Pick<
    NodeConfigInput,
    'cluster' | 'clusterIsDeclared' | 'criSocket' | 'criSocketSource' | 'instancePatch' | 'overlays' | 'declared' | 'patches' | 'settings'
  > {
  readonly templates: Templates;
  readonly catalogue: Catalogue;
  readonly facts: HostFacts;
  /** Minor version of the kubelet that reads the files. */
  readonly minor: Minor;
  readonly nodeName: string;
  readonly extraArgs: readonly Arg[];
  readonly registerWithTaints: readonly Taint[];
  /** kubeadm's feature gate of this name. */
  readonly nodeLocalCRISocket: boolean;
}

/** All rendered files of a host for its kubelet. */
export interface NodeDesign {
  readonly nodeName: string;
  readonly criSocket: string;
  readonly minor: Minor;
  readonly layered: LayeredConfig;
  readonly flags: readonly Arg[];
  /** `instanceConfig` is null if the socket is set by a flag. */
  readonly files: { readonly configYaml: DesiredFile; readonly instanceConfig: DesiredFile | null; readonly flagsEnv: DesiredFile };
  readonly unit: UnitFilesDesign;
  /** The `/healthz` URL of the kubelet; null when healthzPort is 0. */
  readonly healthzUrl: string | null;
  readonly warnings: readonly Warning[];
  /** Source of each value, by path on the host and field. */
  readonly origins: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/**
 * Renders and verifies all files of one node.
 * @throws AppError: a flag that cannot be encoded, a patch that cannot be applied, RENDER_CHECK_FAILED
 */
export function designNode(input: NodeDesignInput): NodeDesign {
  const { facts, minor, nodeName, criSocket } = input;
  const instanceConfig = !isSocketFlag({ ...input, kubeletMinor: minor });
  const { layered, warnings } = layerNodeConfig({
    ...input,
    instanceConfig,
    resolvedActive: facts.resolvedActive,
    runtimeCgroupDriver: facts.cgroupDrivers.get(criSocket) ?? null,
  });
  const flags = buildKubeletFlags({ ...input, hostname: facts.os.hostname, kubeletMinor: minor });
  const unit = designUnits(input);
  const commandLine = [...flags, ...unit.extraArgs.map(parseFlagWord)];
  return {
    nodeName,
    criSocket,
    minor,
    layered,
    flags,
    files: {
      configYaml: renderConfigYaml(input, layered.config),
      instanceConfig: instanceConfig ? renderInstanceConfig(input) : null,
      flagsEnv: renderFlags(input, flags),
    },
    unit,
    healthzUrl: healthzUrl(layered.config),
    warnings: [...warnings, ...unit.warnings, ...shadowedFields(commandLine, layered, minor, input.catalogue)],
    origins: {
      [CONFIG_YAML]: ORIGINS.get(layered, '', () => originTexts(layered)),
      ...(instanceConfig ? { [INSTANCE_CONFIG]: { containerRuntimeEndpoint: input.criSocketSource } } : {}),
      [FLAGS_ENV]: Object.fromEntries(
        flags.map(({ name }) => [name, input.extraArgs.some((arg) => arg.name === name) ? 'nodeRegistration.kubeletExtraArgs' : 'kubeadm']),
      ),
    },
  };
}

const ORIGINS = new Memo<LayeredConfig, Readonly<Record<string, string>>>();

function renderConfigYaml(input: NodeDesignInput, config: JsonObject): DesiredFile {
  const key = `${input.minor} ${identityOf(input.catalogue)}`;
  return CONFIGS.get(config, key, () => desired(CONFIG_YAML, encodeYaml(config, kubeletConfigurationType(input.catalogue, input.minor))));
}

/** Hosts with the same configuration share the file. */
const CONFIGS = new Memo<JsonObject, DesiredFile>();

function renderInstanceConfig({ templates, criSocket }: NodeDesignInput): DesiredFile {
  return desired(INSTANCE_CONFIG, String(renderTemplate(templates, INSTANCE_CONFIG, { criSocket })));
}

function renderFlags({ templates }: NodeDesignInput, flags: readonly Arg[]): DesiredFile {
  const names = flags.map(({ name }) => name);
  return desired(
    FLAGS_ENV,
    render(templates, FLAGS_ENV, { args: joinFlags(flags) }, (text) => checkFlagsEnv(FLAGS_ENV, text, names)),
  );
}

function desired(path: string, content: string): DesiredFile {
  return { path, content, mode: 0o644, owner: 'root:root' };
}

/** A file whose context contains no secret, verified by `check`. */
function render(templates: Templates, path: string, context: Readonly<Record<string, Json>>, check: (text: string) => void): string {
  return RENDERED.get(templates, `${path} ${JSON.stringify(context)}`, () => {
    const text = String(renderTemplate(templates, path, context));
    check(text);
    return text;
  });
}

/** Most hosts have equal files. */
const RENDERED = new Memo<Templates, string>();

function designUnits({ templates, facts }: NodeDesignInput): UnitFilesDesign {
  const kubeletPath = facts.kubelet !== null && 'path' in facts.kubelet ? facts.kubelet.path : KUBELET_PROGRAM;
  const renderUnit = (): string => {
    const path = KUBELET_UNIT_FILE;
    return render(templates, path, { kubeletPath }, (text) =>
      checkUnitFile(path, text, [
        { name: 'ExecStart', value: kubeletPath },
        { name: 'Restart', value: 'always' },
      ]),
    );
  };
  const renderDropIn = (extraArgsFile: string): string => {
    const path = '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf';
    const command = `${kubeletPath} $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS`;
    return render(templates, path, { kubeletPath, extraArgsFile }, (text) =>
      checkUnitFile(path, text, [
        { name: 'EnvironmentFile', value: `-${FLAGS_ENV}` },
        { name: 'EnvironmentFile', value: `-${extraArgsFile}` },
        { name: 'ExecStart', value: '' },
        { name: 'ExecStart', value: command },
      ]),
    );
  };
  return designUnitFiles({ found: facts.unitFiles, unit: facts.unit, packageFamily: facts.os.packageFamily, renderDropIn, renderUnit });
}

/** `--name=value`, or `--name` (true), from a command line. */
function parseFlagWord(word: string): Arg {
  const match = /^--?([^=]+)(?:=([\s\S]*))?$/.exec(word);
  return { name: match?.[1] ?? word, value: match?.[2] ?? 'true' };
}

/** The `/healthz` URL of a kubelet with this configuration on its host; null when healthzPort is 0. */
export function healthzUrl(config: JsonObject): string | null {
  const port = typeof config.healthzPort === 'number' ? config.healthzPort : 10248;
  if (port === 0) return null;
  const bind = typeof config.healthzBindAddress === 'string' && config.healthzBindAddress !== '' ? config.healthzBindAddress : '127.0.0.1';
  const address = bind === '0.0.0.0' ? '127.0.0.1' : bind === '::' ? '::1' : bind;
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}/healthz`;
}
