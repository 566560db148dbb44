/** Removed from the environment at startup (run-process.ts), because child processes inherit it. */
export const SECRET_VARIABLES = {
  sshPassword: 'KUBELETADM_SSH_PASSWORD',
  sshPassphrase: 'KUBELETADM_SSH_PASSPHRASE',
  sudoPassword: 'KUBELETADM_SUDO_PASSWORD',
} as const;
