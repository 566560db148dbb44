import type { Templates } from '../../../codec/render-template.ts';
import type { RunSettings } from '../../../host/run-settings.ts';
import type { Catalogue } from '../../../kubelet/catalogue/catalogue.ts';
import type { KubeletPatch } from '../../../kubelet/layers/patch-files.ts';
import type { FieldSetting } from '../../../kubelet/layers/setting.ts';
import type { NodeRegistration } from '../../config/model.ts';
import type { NodeOverlay } from '../../render/config-drop-ins.ts';
import type { NodeGroups } from '../../render/node-groups.ts';

/** Settings of a node from files and flags, and the strictness of the checks. */
export interface NodeOptions {
  readonly templates: Templates;
  readonly catalogue: Catalogue;
  readonly groups: NodeGroups;
  readonly nodeRegistration: NodeRegistration;
  /** Partial KubeletConfigurations for this node. */
  readonly overlays: readonly NodeOverlay[];
  /** Per-host flags such as `--resolv-conf`. */
  readonly declared: readonly FieldSetting[];
  /** `--set`, as given. */
  readonly settings: readonly string[];
  readonly patches: readonly KubeletPatch[];
  /** Write the layers of this node as drop-in files of `--config-dir`. Absent: merge them into config.yaml. */
  readonly configDir?: boolean | undefined;
  readonly skipPreflight: boolean;
  /** One phase is run, whose own checks are run without those of the phase preflight. */
  readonly singlePhase?: boolean | undefined;
  /** In a dry run, a missing kubelet, runtime or API server is a warning. */
  readonly run: RunSettings;
  /** Files are written to a directory; nothing runs in it. */
  readonly staged: boolean;
  readonly kubeletHealthCheckMs: number;
}
