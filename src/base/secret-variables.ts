/** Environment variables in which secrets are handed over. run-process.ts removes them from its environment at the start: child processes inherit that. */
export const SECRET_VARIABLES = {
  sshPassword: 'KUBELETADM_SSH_PASSWORD',
  sshPassphrase: 'KUBELETADM_SSH_PASSPHRASE',
  sudoPassword: 'KUBELETADM_SUDO_PASSWORD',
} as const;
