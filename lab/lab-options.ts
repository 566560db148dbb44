import type { Secret } from '../src/base/text/secret.ts';

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
  /** A bootstrap token of the API server. */
  readonly token: Secret;
  readonly hosts: readonly LabHost[];
  close(): Promise<void>;
}

export interface LabHost {
  readonly name: string;
  readonly port: number;
  /** The directory that is the host's root. */
  readonly rootDir: string;
  /** The address of the local host at which processes of the host listen, for `--control-plane-endpoint`. */
  readonly loopback: string;
  /** Number of kubelet starts. */
  readonly kubeletStarts: () => number;
  /**
   * The process of the agent's unit: a new value after each start, null while the unit is stopped. The lab
   * runs the agent itself.
   */
  readonly agent: () => { readonly command: readonly string[] } | null;
}

/** What `lab` starts. */
export interface LabRequest {
  /** Undefined: a temporary directory. */
  readonly directory: string | undefined;
  /** Number of hosts. */
  readonly hosts: number;
  readonly demo: boolean;
  /** Install an agent on every host that joins. */
  readonly agents: boolean;
  readonly trialMs: number;
}
