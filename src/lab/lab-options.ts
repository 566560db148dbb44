import type { Secret } from '../base/text/secret.ts';

export interface LabOptions {
  readonly directory: string;
  readonly hosts: number;
}

/** A running lab. All its files are below its directory. */
export interface Lab {
  readonly directory: string;
  readonly server: string;
  /** Administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** OpenSSH client configuration with an alias for each host. */
  readonly sshConfig: string;
  readonly caFile: string;
  /** A bootstrap token the API server knows. */
  readonly token: Secret;
  readonly hosts: readonly LabHost[];
  close(): Promise<void>;
}

export interface LabHost {
  readonly name: string;
  readonly port: number;
  /** The directory that stands for its root. */
  readonly rootDir: string;
  /** How often its kubelet was started. */
  readonly kubeletStarts: () => number;
  /** The process of the agent's unit: another value after each start, null while the unit does not run. The lab runs the agent itself. */
  readonly agent: () => { readonly command: readonly string[] } | null;
}
