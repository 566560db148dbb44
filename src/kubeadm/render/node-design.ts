import type { Arg } from '../../base/arg.ts';
import { AppError } from '../../base/errors.ts';
import { renderTemplate, type Templates } from '../../codec/render-template.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import type { Taint } from '../../kube/taint.ts';
import { FLAGS_ENV, KUBELET_CONF_D } from '../../kube/well-known.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue/catalogue.ts';
import { healthzUrl } from '../../kubelet/effective/healthz-url.ts';
import type { PlacedFlag } from '../../kubelet/effective/running-config.ts';
import { buildKubeletFlags, joinFlags } from '../../kubelet/flags/flags-env.ts';
import type { GroupDesign } from './group-design.ts';
import { checkFlagsEnv } from './group-design.ts';
import { rootFile } from './unit-files.ts';

/** All rendered files of a host for its kubelet. */
export type NodeDesign = ReturnType<typeof designNode>;

/**
 * Adds the flags of one node to the files of its group, and verifies them.
 * @throws AppError: a flag that cannot be encoded, CONFIG_DIR_CONFLICT, RENDER_CHECK_FAILED
 */
export function designNode(input: {
  readonly group: GroupDesign;
  readonly templates: Templates;
  readonly catalogue: Catalogue;
  /** Minor version of the kubelet that reads the files. */
  readonly minor: Minor;
  readonly nodeName: string;
  /** Name of the host; null: unknown. */
  readonly hostname: string | null;
  readonly criSocket: string;
  readonly extraArgs: readonly Arg[];
  /** Flags among them of the host's own unit. Default: none. */
  readonly kept?: readonly PlacedFlag[];
  readonly registerWithTaints: readonly Taint[];
  /** kubeadm's feature gate of this name. */
  readonly nodeLocalCRISocket: boolean;
}) {
  const { group, minor, nodeName, criSocket } = input;
  const { layered, mergedYaml, unit, configYaml, instanceConfig, configDropIns } = group;
  const configDir = configDropIns === null ? null : KUBELET_CONF_D;
  const flags = buildKubeletFlags({ ...input, kubeletMinor: minor, configDir });
  if (configDir !== null) checkConfigDir([...flags, ...unit.extraArgs.map(parseFlagWord)]);
  return {
    nodeName,
    criSocket,
    minor,
    layered,
    mergedYaml,
    flags,
    /** `instanceConfig` is null if the socket is set by a flag, `configDropIns` if all layers are in config.yaml. */
    files: { configYaml, instanceConfig, configDropIns, flagsEnv: renderFlags(input.templates, flags) },
    unit,
    /** The `/healthz` URL of the kubelet; null when healthzPort is 0. */
    healthzUrl: healthzUrl(layered.config),
    warnings: [...group.layerWarnings, ...unit.warnings],
    /** Source of each value, by path on the host and field. */
    origins: {
      ...group.origins,
      [FLAGS_ENV]: Object.fromEntries(
        flags.map(({ name }) => {
          const kept = input.kept?.findLast((flag) => flag.name === name);
          const isExtra = input.extraArgs.some((arg) => arg.name === name);
          return [name, kept !== undefined ? `kept from ${kept.source}` : isExtra ? 'nodeRegistration.kubeletExtraArgs' : 'kubeadm'];
        }),
      ),
    },
  };
}

function renderFlags(templates: Templates, flags: readonly Arg[]): DesiredFile {
  const text = String(renderTemplate(templates, FLAGS_ENV, { args: joinFlags(flags) }));
  checkFlagsEnv(
    text,
    flags.map(({ name }) => name),
  );
  return rootFile(FLAGS_ENV, text);
}

/** Another directory would replace that of the drop-in files. */
function checkConfigDir(commandLine: readonly Arg[]): void {
  const other = commandLine.find(({ name, value }) => name === 'config-dir' && value !== KUBELET_CONF_D);
  if (other === undefined) return;
  const message = `kubeletadm writes the drop-in configuration files of this node to ${KUBELET_CONF_D}, but the kubelet has the flag --config-dir=${other.value}`;
  const hint = `Move the files of ${other.value} to ${KUBELET_CONF_D} and remove the flag. Or set kubeletConfigDir: false`;
  throw new AppError({ code: 'CONFIG_DIR_CONFLICT', path: 'config-dir', message, hint }, { exitCode: 2 });
}

/** `--name=value`, or `--name` (true), from a command line. */
function parseFlagWord(word: string): Arg {
  const match = /^--?([^=]+)(?:=([\s\S]*))?$/.exec(word);
  return { name: match?.[1] ?? word, value: match?.[2] ?? 'true' };
}
