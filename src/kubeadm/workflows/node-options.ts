import type { Templates } from '../../codec/render-template.ts';
import type { SourceDocument } from '../../codec/source.ts';
import type { Catalogue } from '../../kubelet/catalogue.ts';
import type { KubeletPatch } from '../../kubelet/patch-files.ts';
import type { FieldSetting } from '../../kubelet/setting.ts';
import type { NodeRegistration } from '../config/model.ts';

/** What is declared for a node, by file and by flag, and how strictly to take what is found. */
export interface NodeOptions {
  readonly templates: Templates;
  readonly catalogue: Catalogue;
  readonly nodeRegistration: NodeRegistration;
  /** KubeletConfigurations for this node alone. */
  readonly overlays: readonly SourceDocument[];
  /** Per-host flags such as `--resolv-conf`. */
  readonly declared: readonly FieldSetting[];
  /** `--set`, as given. */
  readonly settings: readonly string[];
  readonly patches: readonly KubeletPatch[];
  readonly ignorePreflightErrors: readonly string[];
  readonly skipPreflight: boolean;
  /** What is not there (kubelet, runtime, API server) is a warning. */
  readonly dryRun: boolean;
  /** Files go into a directory: nothing runs there. */
  readonly staged: boolean;
  readonly kubeletHealthCheckMs: number;
}
